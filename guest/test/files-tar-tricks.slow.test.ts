import { spawn } from "node:child_process";
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { tries } from "../../test/support/thorough.ts";
import { archive, base256, file, folder, gnuLong, hardLink, header, pax, rawPax, symbolicLink } from "./files-archive.ts";
import { refusal, startWorker, temporaryFolder } from "./files-client.ts";

describe("unpacking refuses, and writes nothing outside the target:", () => {
  const long = "x/".repeat(2100);
  const tricks: [what: string, code: string, make: () => Buffer][] = [
    ["an absolute name", "unsafe", () => archive(file("/tmp/caisson-escape"))],
    ["an absolute pax name", "unsafe", () => archive(pax({ path: "/tmp/caisson-escape" }), file("ok"))],
    ["an absolute GNU name", "unsafe", () => archive(gnuLong("L", "/tmp/caisson-escape"), file("ok"))],
    ["..", "unsafe", () => archive(file("../escape"))],
    [".. in the middle", "unsafe", () => archive(folder("a/"), file("a/../../escape"))],
    [".. at the end", "unsafe", () => archive(folder("a/.."))],
    [".. in the prefix", "unsafe", () => archive(file("escape", "x", { prefix: ".." }))],
    [".. in a pax name", "unsafe", () => archive(pax({ path: "a/../../escape" }), file("ok"))],
    [".. in a GNU name", "unsafe", () => archive(gnuLong("L", "../escape"), file("ok"))],
    ["a file through a link", "unsafe", () => archive(symbolicLink("l", ".."), file("l/escape"))],
    ["a file deep below a link", "unsafe", () => archive(symbolicLink("l", ".."), file("l/there/escape"))],
    ["a hard link to a file deep below a link", "unsafe", () => archive(symbolicLink("l", ".."), hardLink("h", "l/there/file"))],
    ["a file through an absolute link", "unsafe", () => archive(symbolicLink("l", "/tmp"), file("l/caisson-escape"))],
    ["a file through a link to a link", "unsafe", () => archive(symbolicLink("m", "l"), symbolicLink("l", ".."), file("m/escape"))],
    ["a folder through a link", "unsafe", () => archive(symbolicLink("l", ".."), folder("l/escape"))],
    ["a folder in place of a link", "unsafe", () => archive(symbolicLink("l", ".."), folder("l"), file("l/escape"))],
    ["a link through a link", "unsafe", () => archive(symbolicLink("l", ".."), symbolicLink("l/escape", "x"))],
    ["a folder that becomes a link", "unsafe", () => archive(folder("d"), symbolicLink("d", ".."), file("d/escape"))],
    ["a folder with content that becomes a link", "unsafe", () => archive(file("d/x"), symbolicLink("d", ".."), file("d/escape"))],
    ["a link in place of the target", "unsafe", () => archive(symbolicLink("./", ".."))],
    ["a hard link that leads out", "unsafe", () => archive(hardLink("h", "../outside"))],
    ["an absolute hard link", "unsafe", () => archive(hardLink("h", "/etc/passwd"))],
    ["a pax hard link that leads out", "unsafe", () => archive(pax({ linkpath: "../outside" }), hardLink("h", "x"))],
    ["a GNU hard link that leads out", "unsafe", () => archive(gnuLong("K", "/etc/passwd"), hardLink("h", "x"))],
    ["a hard link through a link", "unsafe", () => archive(symbolicLink("l", ".."), hardLink("h", "l/outside"))],
    ["a hard link created through a link", "unsafe", () => archive(file("f"), symbolicLink("l", ".."), hardLink("l/escape", "f"))],
    ["a hard link to a link", "unsafe", () => archive(symbolicLink("l", "../outside"), hardLink("h", "l"))],
    ["a hard link to a folder", "unsafe", () => archive(folder("d"), hardLink("h", "d"))],
    ["a hard link to a missing file", "not_found", () => archive(hardLink("h", "nothing"))],
    ["a hard link with content", "invalid", () => archive(file("f"), file("h", "content", { type: "1", link: "f" }))],
    ["a character device", "unsafe", () => archive(header({ name: "null", type: "3" }))],
    ["a block device", "unsafe", () => archive(header({ name: "disk", type: "4" }))],
    ["a FIFO", "unsafe", () => archive(header({ name: "fifo", type: "6" }))],
    ["NUL in a pax name", "unsafe", () => archive(pax({ path: "a\0b" }), file("ok"))],
    ["NUL in a pax link", "unsafe", () => archive(pax({ linkpath: "a\0b" }), symbolicLink("l", "x"))],
    ["NUL in a GNU name", "unsafe", () => archive(gnuLong("L", "a\0b"), file("ok"))],
    ["a name over 4,095 bytes", "unsafe", () => archive(pax({ path: `${long}f` }), file("ok"))],
    ["a global name", "unsafe", () => archive(pax({ path: "all" }, "g"), file("ok"))],
    ["a global size", "unsafe", () => archive(pax({ size: "0" }, "g"), file("ok"))],
    ["an overlong component", "invalid", () => archive(pax({ path: "x".repeat(300) }), file("ok"))],
    ["an empty name", "invalid", () => archive(file(""))],
    ["a link to nothing", "invalid", () => archive(symbolicLink("l", ""))],
    ["a file below a file", "not_directory", () => archive(file("f"), file("f/x"))],
    ["a file in place of a folder", "is_directory", () => archive(folder("d"), file("d"))],
    ["a folder in place of a file", "not_directory", () => archive(file("f"), folder("f"))],
    ["a file in place of the target", "is_directory", () => archive(file("."))],
    ["a wrong checksum", "invalid", () => archive(file("f", "x", { checksum: 1 }))],
    ["a negative size", "invalid", () => archive(header({ name: "f", size: base256(-1n) }))],
    ["a size past 63 bits", "invalid", () => archive(header({ name: "f", size: base256(1n << 64n) }))],
    ["a negative pax size", "invalid", () => archive(pax({ size: "-1" }), file("f"))],
    ["an overflowing pax size", "invalid", () => archive(pax({ size: "99999999999999999999" }), file("f"))],
    ["a pax size that is not a number", "invalid", () => archive(pax({ size: "0x10" }), file("f"))],
    ["a size that is not a number", "invalid", () => archive(header({ name: "f", size: Buffer.from("12x456789012") }))],
    ["a size larger than the archive", "invalid", () => archive(header({ name: "f", size: 1 << 20 }))],
    ["a folder with content", "invalid", () => archive(file("d/", "content", { type: "5" }))],
    ["a pax record that runs past its header", "invalid", () => archive(rawPax(Buffer.from("99 path=a\n")), file("f"))],
    ["a pax record without a line feed", "invalid", () => archive(rawPax(Buffer.from("9 path=ab")), file("f"))],
    ["a pax record without =", "invalid", () => archive(rawPax(Buffer.from("8 pathx\n")), file("f"))],
    ["a pax record of length 0", "invalid", () => archive(rawPax(Buffer.from("0 path=a\n")), file("f"))],
    ["a pax record without a length", "invalid", () => archive(rawPax(Buffer.from(" path=a\n")), file("f"))],
    ["a huge extended header", "too_large", () => archive(header({ name: "x", type: "x", size: 1 << 24 }))],
    ["a sparse pax entry", "unsupported", () => archive(pax({ "GNU.sparse.major": "1" }), file("f"))],
    ["a sparse GNU entry", "unsupported", () => archive(header({ name: "f", type: "S", magic: "ustar  \0" }))],
    ["an unknown type", "unsupported", () => archive(header({ name: "f", type: "Z" }))],
    ["a missing end", "invalid", () => file("f")],
    ["an empty input", "invalid", () => Buffer.alloc(0)],
    ["half a header", "invalid", () => file("f").subarray(0, 200)],
    ["half a file", "invalid", () => file("f", Buffer.alloc(5000)).subarray(0, 2000)],
    ["a file that is not an archive", "invalid", () => Buffer.from("#!/bin/sh\necho hello\n".repeat(100))],
  ];
  for (const [what, code, make] of tricks) {
    test(what, async () => {
      using temporary = temporaryFolder();
      await using worker = startWorker();
      const target = join(temporary.path, "target");
      writeFileSync(join(temporary.path, "outside"), "untouched", { mode: 0o600 });
      mkdirSync(target);
      mkdirSync(join(temporary.path, "there"));
      writeFileSync(join(temporary.path, "there/file"), "untouched");
      expect(await refusal(worker.tarIn(target, make()))).toBe(code);
      expect(readdirSync(temporary.path).sort()).toEqual(["outside", "target", "there"]);
      expect(readdirSync(join(temporary.path, "there"))).toEqual(["file"]);
      expect(statSync(join(temporary.path, "there/file")).nlink).toBe(1);
      expect(lstatSync(target).isDirectory()).toBe(true);
      expect(readFileSync(join(temporary.path, "outside"), "utf8")).toBe("untouched");
      expect(statSync(join(temporary.path, "outside")).nlink).toBe(1);
      expect(existsSync("/tmp/caisson-escape")).toBe(false);
      // A half-received file is removed.
      for (const name of readdirSync(target)) if (name === "f" && what.startsWith("half")) expect(name).toBe("nothing");
      expect((await worker.stat(target)).kind).toBe(2);
    });
  }

  test("writing through links that existed before", async () => {
    using temporary = temporaryFolder();
    await using worker = startWorker();
    const at = (name: string) => join(temporary.path, name);
    mkdirSync(at("target"));
    mkdirSync(at("outside"));
    writeFileSync(at("outside/file"), "untouched");
    symlinkSync("../outside", at("target/folder"));
    symlinkSync("../outside/file", at("target/file"));
    expect(await refusal(worker.tarIn(at("target"), archive(file("folder/file"))))).toBe("unsafe");
    expect(await refusal(worker.tarIn(at("target"), archive(folder("folder"))))).toBe("unsafe");
    await worker.tarIn(at("target"), archive(file("file", "new")));
    expect(readFileSync(at("outside/file"), "utf8")).toBe("untouched");
    expect(lstatSync(at("target/file")).isFile()).toBe(true);
    expect(readdirSync(at("outside"))).toEqual(["file"]);
  });

  const ROUNDS_MAX = 20_000;
  test("writing through a folder that is constantly swapped with a link", async () => {
    using temporary = temporaryFolder();
    await using worker = startWorker();
    const at = (name: string) => join(temporary.path, name);
    mkdirSync(at("target"));
    mkdirSync(at("outside"));
    // Moves `d` aside, be it a folder or a link, puts a link to `outside` in its place, and removes the link again.
    const swap = `const fs=require("fs");process.chdir(${JSON.stringify(at("target"))});process.stdout.write("ready");
      for(let i=0;;i++){fs.symlinkSync("../outside","l"+i);try{fs.renameSync("d","x"+i)}catch{}
      try{fs.renameSync("l"+i,"d")}catch{fs.unlinkSync("l"+i)}try{fs.unlinkSync("d")}catch{}}`;
    const swapper = spawn(process.execPath, ["-e", swap], { stdio: ["ignore", "pipe", "inherit"] });
    try {
      await new Promise((resolve) => swapper.stdout.once("data", resolve));
      const outcomes = new Map<string, number>();
      // Repeats until the race occurs, which takes longer on a busy machine.
      for (let i = 0; i < tries(300, 60) || (!outcomes.has("unsafe") && i < ROUNDS_MAX); i++) {
        const outcome = await refusal(worker.tarIn(at("target"), archive(folder("d"), file("d/a"), file("d/b/c"), hardLink("d/h", "d/a"))));
        outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
      }
      // The race was real: at least one attempt met the link.
      expect([...outcomes.keys()], JSON.stringify([...outcomes])).toContain("unsafe");
    } finally {
      const swapperExit = new Promise((resolve) => swapper.once("exit", resolve));
      swapper.kill("SIGKILL");
      await swapperExit;
    }
    expect(readdirSync(at("outside"))).toEqual([]);
  });
});
