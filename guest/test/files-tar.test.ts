import { execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { archive, base256, END, file, folder, gnuLong, hardLink, header, pax, rawPax, symbolicLink } from "./files-archive.ts";
import { type Refused, refusal, startWorker, temporaryFolder } from "./files-client.ts";

const asRoot = process.getuid?.() === 0;
const tar = (...args: string[]) => execFileSync("tar", args, { maxBuffer: 1 << 28 });
/** Everything about a tree that an archive keeps, one line an entry. */
const describeTree = (path: string) =>
  execFileSync(
    "sh",
    [
      "-c",
      `cd "$0" && find . -printf '%P %y %m %T@ %s %l %n\\n' | sed 's/\\.0*  *\\([0-9]\\)/ \\1/' | sort; find . -type f -exec sha256sum {} + | sort`,
      path,
    ],
    {
      encoding: "utf8",
    },
  ).replaceAll(/( d \d+ \S+) \d+/g, "$1");

describe("an archive that plays tricks is refused, and nothing lands outside", () => {
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
    ["a file far behind a link", "unsafe", () => archive(symbolicLink("l", ".."), file("l/there/escape"))],
    ["a hard link from far behind a link", "unsafe", () => archive(symbolicLink("l", ".."), hardLink("h", "l/there/file"))],
    ["a file through an absolute link", "unsafe", () => archive(symbolicLink("l", "/tmp"), file("l/caisson-escape"))],
    ["a file through a link to a link", "unsafe", () => archive(symbolicLink("m", "l"), symbolicLink("l", ".."), file("m/escape"))],
    ["a folder through a link", "unsafe", () => archive(symbolicLink("l", ".."), folder("l/escape"))],
    ["a folder on a link", "unsafe", () => archive(symbolicLink("l", ".."), folder("l"), file("l/escape"))],
    ["a link through a link", "unsafe", () => archive(symbolicLink("l", ".."), symbolicLink("l/escape", "x"))],
    ["a folder that becomes a link", "unsafe", () => archive(folder("d"), symbolicLink("d", ".."), file("d/escape"))],
    ["a folder with content that becomes a link", "unsafe", () => archive(file("d/x"), symbolicLink("d", ".."), file("d/escape"))],
    ["the target itself as a link", "unsafe", () => archive(symbolicLink("./", ".."))],
    ["a hard link out", "unsafe", () => archive(hardLink("h", "../outside"))],
    ["an absolute hard link", "unsafe", () => archive(hardLink("h", "/etc/passwd"))],
    ["a pax hard link out", "unsafe", () => archive(pax({ linkpath: "../outside" }), hardLink("h", "x"))],
    ["a GNU hard link out", "unsafe", () => archive(gnuLong("K", "/etc/passwd"), hardLink("h", "x"))],
    ["a hard link through a link", "unsafe", () => archive(symbolicLink("l", ".."), hardLink("h", "l/outside"))],
    ["a hard link into a link", "unsafe", () => archive(file("f"), symbolicLink("l", ".."), hardLink("l/escape", "f"))],
    ["a hard link of a link", "unsafe", () => archive(symbolicLink("l", "../outside"), hardLink("h", "l"))],
    ["a hard link of a folder", "unsafe", () => archive(folder("d"), hardLink("h", "d"))],
    ["a hard link of nothing", "not_found", () => archive(hardLink("h", "nothing"))],
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
    ["no name", "invalid", () => archive(file(""))],
    ["a link to nothing", "invalid", () => archive(symbolicLink("l", ""))],
    ["a file under a file", "not_directory", () => archive(file("f"), file("f/x"))],
    ["a file on a folder", "is_directory", () => archive(folder("d"), file("d"))],
    ["a folder on a file", "not_directory", () => archive(file("f"), folder("f"))],
    ["a file in place of the target", "is_directory", () => archive(file("."))],
    ["a wrong checksum", "invalid", () => archive(file("f", "x", { checksum: 1 }))],
    ["a negative size", "invalid", () => archive(header({ name: "f", size: base256(-1n) }))],
    ["a size past 63 bits", "invalid", () => archive(header({ name: "f", size: base256(1n << 64n) }))],
    ["a negative pax size", "invalid", () => archive(pax({ size: "-1" }), file("f"))],
    ["an overflowing pax size", "invalid", () => archive(pax({ size: "99999999999999999999" }), file("f"))],
    ["a pax size that is no number", "invalid", () => archive(pax({ size: "0x10" }), file("f"))],
    ["a size that is no number", "invalid", () => archive(header({ name: "f", size: Buffer.from("12x456789012") }))],
    ["a size larger than the archive", "invalid", () => archive(header({ name: "f", size: 1 << 20 }))],
    ["a folder with content", "invalid", () => archive(file("d/", "content", { type: "5" }))],
    ["a pax record that runs over", "invalid", () => archive(rawPax(Buffer.from("99 path=a\n")), file("f"))],
    ["a pax record without end", "invalid", () => archive(rawPax(Buffer.from("9 path=ab")), file("f"))],
    ["a pax record without =", "invalid", () => archive(rawPax(Buffer.from("8 pathx\n")), file("f"))],
    ["a pax record of length 0", "invalid", () => archive(rawPax(Buffer.from("0 path=a\n")), file("f"))],
    ["a pax record without length", "invalid", () => archive(rawPax(Buffer.from(" path=a\n")), file("f"))],
    ["a huge extended header", "too_large", () => archive(header({ name: "x", type: "x", size: 1 << 24 }))],
    ["a sparse pax entry", "unsupported", () => archive(pax({ "GNU.sparse.major": "1" }), file("f"))],
    ["a sparse GNU entry", "unsupported", () => archive(header({ name: "f", type: "S", magic: "ustar  \0" }))],
    ["an unknown kind", "unsupported", () => archive(header({ name: "f", type: "Z" }))],
    ["no end", "invalid", () => file("f")],
    ["nothing at all", "invalid", () => Buffer.alloc(0)],
    ["half a header", "invalid", () => file("f").subarray(0, 200)],
    ["half a file", "invalid", () => file("f", Buffer.alloc(5000)).subarray(0, 2000)],
    ["no archive", "invalid", () => Buffer.from("#!/bin/sh\necho hello\n".repeat(100))],
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
      // A file that came only half is not left.
      for (const name of readdirSync(target)) if (name === "f" && what.startsWith("half")) expect(name).toBe("nothing");
      expect((await worker.stat(target)).kind).toBe(2);
    });
  }

  test("links that were there before are not written through either", async () => {
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

  test("a folder and a link that change places all the time", { timeout: 30_000 }, async () => {
    using temporary = temporaryFolder();
    await using worker = startWorker();
    const at = (name: string) => join(temporary.path, name);
    mkdirSync(at("target"));
    mkdirSync(at("outside"));
    // Whatever `d` is goes aside, a link out takes its name, and goes again.
    const swap = `const fs=require("fs");process.chdir(${JSON.stringify(at("target"))});process.stdout.write("ready");
      for(let i=0;;i++){fs.symlinkSync("../outside","l"+i);try{fs.renameSync("d","x"+i)}catch{}
      try{fs.renameSync("l"+i,"d")}catch{fs.unlinkSync("l"+i)}try{fs.unlinkSync("d")}catch{}}`;
    const swapper = spawn(process.execPath, ["-e", swap], { stdio: ["ignore", "pipe", "inherit"] });
    try {
      await new Promise((resolve) => swapper.stdout.once("data", resolve));
      const outcomes = new Map<string, number>();
      for (let i = 0; i < 300; i++) {
        const outcome = await refusal(worker.tarIn(at("target"), archive(folder("d"), file("d/a"), file("d/b/c"), hardLink("d/h", "d/a"))));
        outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
      }
      // The race was real: some came through, some met the link.
      expect([...outcomes.keys()], JSON.stringify([...outcomes])).toContain("unsafe");
    } finally {
      const gone = new Promise((resolve) => swapper.once("exit", resolve));
      swapper.kill("SIGKILL");
      await gone;
    }
    expect(readdirSync(at("outside"))).toEqual([]);
  });
});

describe("unpacking", () => {
  test("keeps modes but set-id bits, times, links; folders get theirs at the end", async () => {
    using temporary = temporaryFolder();
    await using worker = startWorker();
    const target = join(temporary.path, "new/target");
    const made = archive(
      folder("ro/", { mode: 0o555, modified: 1_400_000_000 }),
      file("ro/run", "#!", { mode: 0o7755, modified: 1_500_000_000 }),
      hardLink("ro/same", "ro/run"),
      symbolicLink("ro/link", "/etc/passwd"),
      file("./a/./b//c", "implicit folders"),
      pax({ mtime: "1300000000.25" }),
      file("precise", ""),
      header({ name: "contiguous", type: "7" }),
      header({ name: "old", type: "\0", magic: "" }),
      header({ name: "v7folder/", type: "0", magic: "" }),
    );
    expect(await worker.tarIn(target, made, { chunkBytes: 7 })).toEqual({ entries: 9, bytes: 18 });
    expect(statSync(join(target, "ro"))).toMatchObject({ mtimeMs: 1_400_000_000_000 });
    expect(statSync(join(target, "ro")).mode & 0o7777).toBe(0o555);
    expect(statSync(join(target, "ro/run"))).toMatchObject({ mtimeMs: 1_500_000_000_000, nlink: 2 });
    expect(statSync(join(target, "ro/run")).mode & 0o7777).toBe(0o755);
    expect(readlinkSync(join(target, "ro/link"))).toBe("/etc/passwd");
    expect(readFileSync(join(target, "a/b/c"), "utf8")).toBe("implicit folders");
    expect(statSync(join(target, "precise")).mtimeMs).toBe(1_300_000_000_250);
    expect(statSync(join(target, "v7folder")).isDirectory()).toBe(true);
  });

  test("later entries replace earlier files and links; a link named twice is no harm", async () => {
    using temporary = temporaryFolder();
    await using worker = startWorker();
    const made = archive(
      symbolicLink("a", "nowhere"),
      file("a", "one"),
      file("a", "two"),
      symbolicLink("b", "x"),
      symbolicLink("b", "y"),
      hardLink("a", "a"),
      hardLink("b", "a"),
    );
    await worker.tarIn(temporary.path, made);
    expect(readFileSync(join(temporary.path, "b"), "utf8")).toBe("two");
    expect(lstatSync(join(temporary.path, "b")).nlink).toBe(2);
  });

  test("bounds on bytes and entries", async () => {
    using temporary = temporaryFolder();
    await using worker = startWorker();
    const made = archive(file("a", "12345"), file("b", "12345"));
    expect(await worker.tarIn(temporary.path, made, { bytesMax: 10, entriesMax: 2 })).toEqual({ entries: 2, bytes: 10 });
    expect(await refusal(worker.tarIn(temporary.path, made, { bytesMax: 9 }))).toBe("too_large");
    expect(await refusal(worker.tarIn(temporary.path, made, { entriesMax: 1 }))).toBe("too_large");
    // Declared, never sent: refused by the header alone.
    expect(await refusal(worker.tarIn(temporary.path, header({ name: "bomb", size: base256(1n << 50n) }), { bytesMax: 1 << 30 }))).toBe(
      "too_large",
    );
    const descriptions = archive(...Array.from({ length: 100 }, () => pax({ comment: "x" })), file("a"));
    expect(await refusal(worker.tarIn(temporary.path, descriptions, { entriesMax: 2 }))).toBe("too_large");
  });

  test("strips components, of hard links too", async () => {
    using temporary = temporaryFolder();
    await using worker = startWorker();
    const made = archive(folder("top/"), file("top/in/a", "x"), hardLink("top/in/b", "top/in/a"), file("alone"));
    await worker.tarIn(temporary.path, made, { stripComponents: 1 });
    expect(readdirSync(temporary.path)).toEqual(["in"]);
    expect(lstatSync(join(temporary.path, "in/b")).nlink).toBe(2);
    expect(await refusal(worker.tarIn(temporary.path, archive(file("a/../../x")), { stripComponents: 2 }))).toBe("unsafe");
  });

  test.runIf(asRoot)("keeps owners for root only", async () => {
    using temporary = temporaryFolder();
    await using user = startWorker({ uid: 4242 });
    await using root = startWorker();
    const made = archive(folder("d", { uid: 7, gid: 8 }), file("d/f", "x", { uid: 5, gid: 6, mode: 0o4755 }));
    expect(await refusal(user.tarIn(temporary.path, made, { keepOwner: true }))).toBe("denied");
    await root.tarIn(temporary.path, made, { keepOwner: true });
    expect(statSync(join(temporary.path, "d"))).toMatchObject({ uid: 7, gid: 8 });
    expect(statSync(join(temporary.path, "d/f"))).toMatchObject({ uid: 5, gid: 6 });
    expect(statSync(join(temporary.path, "d/f")).mode & 0o7777).toBe(0o755);
    await user.tarIn(join(temporary.path, "u"), made);
    expect(statSync(join(temporary.path, "u/d/f")).uid).toBe(4242);
  });

  test("a cancelled or broken stream leaves whole files only", async () => {
    using temporary = temporaryFolder();
    const half = Buffer.concat([file("whole", "x"), header({ name: "half", size: 1 << 20 }), randomBytes(100_000)]);
    for (const end of ["cancel", "eof", "SIGTERM"] as const) {
      const worker = startWorker();
      const exchange = worker.open("TAR_IN", { folder: temporary.path });
      exchange.data(half);
      await expect.poll(() => existsSync(join(temporary.path, "half"))).toBe(true);
      if (end === "cancel") {
        exchange.cancel();
        expect(await refusal(exchange.next())).toBe("gone");
        worker.process.stdin?.end();
      } else if (end === "eof") worker.process.stdin?.end();
      else worker.process.kill(end);
      await worker.ended;
      expect(readdirSync(temporary.path)).toEqual(["whole"]);
    }
  });

  for (const format of ["ustar", "pax", "gnu", "v7", "oldgnu"]) {
    test(`what GNU tar writes (${format})`, async () => {
      using temporary = temporaryFolder();
      await using worker = startWorker();
      const source = join(temporary.path, "source");
      makeTree(source, { longNames: format === "pax" || format === "gnu" || format === "oldgnu" });
      const made = tar("-C", source, `--format=${format}`, "-c", ".");
      await worker.tarIn(join(temporary.path, "copy"), made);
      expect(describeTree(join(temporary.path, "copy"))).toBe(describeTree(source));
    });
  }
});

describe("packing", () => {
  test("GNU tar unpacks it to the same tree, and so do we", async () => {
    using temporary = temporaryFolder();
    await using worker = startWorker();
    const source = join(temporary.path, "source");
    makeTree(source, { longNames: true });
    const made = await worker.tarOut(source);
    mkdirSync(join(temporary.path, "gnu"));
    writeFileSync(join(temporary.path, "a.tar"), made);
    tar("--warning=no-unknown-keyword", "-C", join(temporary.path, "gnu"), "-xpf", join(temporary.path, "a.tar"));
    expect(describeTree(join(temporary.path, "gnu"))).toBe(describeTree(source));
    await worker.tarIn(join(temporary.path, "ours"), made);
    expect(describeTree(join(temporary.path, "ours"))).toBe(describeTree(source));
    expect((await worker.tarOut(source)).equals(made)).toBe(true);
    expect(made.subarray(-1024).equals(END)).toBe(true);
  });

  test("sorted by name; leaves out what it is told, and sockets", async () => {
    using temporary = temporaryFolder();
    await using worker = startWorker();
    const at = (name: string) => join(temporary.path, name);
    for (const name of ["z", "b/node_modules", "b/keep", "a/b/c", "node_modules/x"]) mkdirSync(at(name), { recursive: true });
    execFileSync("mkfifo", [at("fifo")]);
    const server = createServer().listen(at("socket"));
    const names = async (exclude: string[]) => {
      const listed = execFileSync("tar", ["-tf", "-"], { input: await worker.tarOut(temporary.path, { exclude }), encoding: "utf8" });
      return listed.trim().split("\n").join(" ");
    };
    expect(await names([])).toBe("./ a/ a/b/ a/b/c/ b/ b/keep/ b/node_modules/ node_modules/ node_modules/x/ z/");
    expect(await names(["node_modules", "a/b"])).toBe("./ a/ b/ b/keep/ z/");
    expect(await names(["./b/keep/", "c", "z/"])).toBe("./ a/ a/b/ b/ b/node_modules/ node_modules/ node_modules/x/");
    await new Promise((resolve) => server.close(resolve));
  });

  test("one file or one link", async () => {
    using temporary = temporaryFolder();
    await using worker = startWorker();
    writeFileSync(join(temporary.path, "f"), "content");
    symlinkSync("f", join(temporary.path, "l"));
    const listed = async (name: string) =>
      execFileSync("tar", ["-tvf", "-"], { input: await worker.tarOut(join(temporary.path, name)), encoding: "utf8" });
    expect(await listed("f")).toMatch(/^-rw-r--r--.* 7 .* f\n$/);
    expect(await listed("l")).toMatch(/^l.* l -> f\n$/);
    expect(await refusal(worker.tarOut(join(temporary.path, "nothing")))).toBe("not_found");
    expect(await refusal(worker.tarOut("/dev/null"))).toBe("unsupported");
  });

  test("a bound on bytes, exactly", async () => {
    using temporary = temporaryFolder();
    await using worker = startWorker();
    writeFileSync(join(temporary.path, "f"), Buffer.alloc(1000));
    const whole = await worker.tarOut(temporary.path);
    expect(whole.length).toBe(512 + 512 + 1024 + 1024);
    expect((await worker.tarOut(temporary.path, { bytesMax: whole.length })).length).toBe(whole.length);
    expect(await refusal(worker.tarOut(temporary.path, { bytesMax: whole.length - 1 }))).toBe("too_large");
    truncateSync(join(temporary.path, "f"), 2 ** 40);
    expect(await refusal(worker.tarOut(temporary.path, { bytesMax: 1 << 30 }))).toBe("too_large");
  });

  test("numbers that ustar cannot hold", async () => {
    using temporary = temporaryFolder();
    await using worker = startWorker();
    const path = join(temporary.path, "old");
    writeFileSync(path, "x");
    execFileSync("touch", ["-d", "@-1000000000", path]);
    if (asRoot) chownSync(path, 3_000_000, 3_000_001);
    const listed = execFileSync("tar", ["--numeric-owner", "--utc", "-tvf", "-"], { input: await worker.tarOut(path), encoding: "utf8" });
    expect(listed).toContain("1938-04-24");
    if (asRoot) expect(listed).toContain("3000000/3000001");
  });

  test("a file that shrinks is padded, one that grows is cut", async () => {
    using temporary = temporaryFolder();
    await using worker = startWorker();
    for (const change of [1_200_000, 9_000_000]) {
      const path = join(temporary.path, "f");
      writeFileSync(path, Buffer.alloc(3_000_000, 1));
      const exchange = worker.open("TAR_OUT", { path });
      await exchange.next();
      const chunks: Buffer[] = [];
      let bytes = 0;
      while (bytes < 1_048_576) {
        chunks.push((await exchange.next()).payload);
        bytes += (chunks.at(-1) as Buffer).length;
      }
      truncateSync(path, change);
      exchange.credit(10_000_000);
      for (;;) {
        const frame = await exchange.next();
        if (frame.type === "END") break;
        chunks.push(frame.payload);
      }
      const out = Buffer.concat(chunks);
      expect(out.length).toBe(512 + 3_000_320 + 1024);
      const content = out.subarray(512, 512 + 3_000_000);
      expect(content.subarray(0, 1_048_000).every((byte) => byte === 1)).toBe(true);
      expect(content.at(-1)).toBe(change < 3_000_000 ? 0 : 1);
    }
  });

  test.runIf(asRoot)("what cannot be read is named", async () => {
    using temporary = temporaryFolder();
    await using worker = startWorker({ uid: 4242 });
    mkdirSync(join(temporary.path, "d"));
    writeFileSync(join(temporary.path, "d/secret"), "x", { mode: 0o600 });
    const error = await worker.tarOut(temporary.path).catch((caught: Refused) => caught);
    expect(error).toMatchObject({ code: "denied", message: expect.stringContaining("d/secret") });
    chmodSync(join(temporary.path, "d"), 0o700);
    const second = await worker.tarOut(temporary.path).catch((caught: Refused) => caught);
    expect(second).toMatchObject({ code: "denied", message: expect.stringMatching(/\/d: /) });
    expect(await refusal(worker.tarOut(join(temporary.path, "d")))).toBe("denied");
  });

  test("a cancelled one is closed, and the worker goes on", async () => {
    using temporary = temporaryFolder();
    await using worker = startWorker();
    writeFileSync(join(temporary.path, "f"), Buffer.alloc(5_000_000));
    const exchange = worker.open("TAR_OUT", { path: temporary.path });
    await exchange.next();
    exchange.cancel();
    const rest = async () => {
      for (;;) await exchange.next();
    };
    expect(await refusal(rest())).toBe("gone");
    expect((await worker.stat("/")).kind).toBe(2);
  });
});

function makeTree(path: string, { longNames }: { longNames: boolean }): void {
  mkdirSync(join(path, "empty"), { recursive: true });
  mkdirSync(join(path, "deep/er/still"), { recursive: true });
  writeFileSync(join(path, "deep/er/script"), "#!/bin/sh\n", { mode: 0o755 });
  writeFileSync(join(path, "large"), randomBytes(1_500_001));
  writeFileSync(join(path, "exact"), randomBytes(1024));
  writeFileSync(join(path, "nothing"), "");
  writeFileSync(Buffer.from([...Buffer.from(`${path}/byte-`), 0xff, 0xe4]), "bytes");
  linkSync(join(path, "exact"), join(path, "deep/exact-again"));
  symlinkSync("../large", join(path, "deep/link"));
  symlinkSync("nowhere", join(path, "dangling"));
  if (longNames) {
    const long = join(path, "l".repeat(120), "m".repeat(120), "n".repeat(120));
    mkdirSync(long, { recursive: true });
    writeFileSync(join(long, "o".repeat(200)), "far down");
    writeFileSync(Buffer.concat([Buffer.from(`${long}/`), Buffer.alloc(150, 0xfe)]), "not UTF-8");
    symlinkSync("p".repeat(300), join(path, "long-link"));
    linkSync(join(long, "o".repeat(200)), join(path, "zz-hard-of-long"));
    const prefixed = join(path, "q".repeat(90), "r".repeat(60));
    mkdirSync(prefixed, { recursive: true });
    writeFileSync(join(prefixed, "s".repeat(90)), "prefix");
  }
  execFileSync("sh", ["-c", `cd "$0" && find . -exec touch -h -d @1500000000 {} + && chmod 700 empty && chmod 550 deep/er`, path]);
}
