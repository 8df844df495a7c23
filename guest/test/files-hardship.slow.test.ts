import { execFileSync, spawn } from "node:child_process";
import { existsSync, linkSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { sharedMemory } from "../../test/support/memory-folder.ts";
import { tries } from "../../test/support/thorough.ts";
import { archive, base256, file, folder, gnuLong, hardLink, header, pax, symbolicLink } from "./files-archive.ts";
import { hasStrace, isSanitised, refusal, startWorker, temporaryFolder } from "./files-client.ts";

describe.runIf(hasStrace)("a signal at the worst moment", () => {
  test("removes the file that was just created, and keeps complete ones", async () => {
    using temporary = temporaryFolder();
    // The file exists for half a second before the worker learns that it has created it.
    await using worker = startWorker({ inject: "openat:delay_exit=500000" });
    const exchange = worker.open("TAR_IN", { folder: temporary.path });
    exchange.data(Buffer.concat([file("whole", "x"), header({ name: "half", size: 1 << 20 })]));
    const tracer = worker.process.pid as number;
    await expect.poll(() => existsSync(join(temporary.path, "half")), { interval: 5 }).toBe(true);
    const traced = readFileSync(`/proc/${tracer}/task/${tracer}/children`, "utf8").trim();
    process.kill(Number(traced), "SIGTERM");
    await worker.ended;
    expect(readdirSync(temporary.path)).toEqual(["whole"]);
  });
});

describe.runIf(hasStrace)("on kernels and file systems with fewer features", () => {
  test.each(["ENOSYS", "EPERM"])("refuses links without openat2 (%s)", async (error) => {
    using temporary = temporaryFolder();
    await using worker = startWorker({ inject: `openat2:error=${error}` });
    const target = join(temporary.path, "target");
    writeFileSync(join(temporary.path, "outside"), "untouched");
    expect(await worker.tarIn(target, archive(folder("a/b/"), file("a/b/c"), hardLink("a/d", "a/b/c")))).toMatchObject({ entries: 3 });
    for (const trick of [
      archive(symbolicLink("l", ".."), file("l/escape")),
      archive(symbolicLink("l", ".."), folder("l")),
      archive(symbolicLink("l", ".."), hardLink("h", "l/outside")),
      archive(folder("e"), symbolicLink("e", "..")),
      archive(symbolicLink("a/b/l", "../../.."), file("a/b/l/x/escape")),
    ]) {
      expect(await refusal(worker.tarIn(target, trick))).toBe("unsafe");
    }
    expect(await refusal(worker.tarIn(target, archive(file("f"), file("f/x"))))).toBe("not_directory");
    expect(readdirSync(temporary.path).sort()).toEqual(["outside", "target"]);
  });

  test("refuses to overwrite a link without RENAME_NOREPLACE", async () => {
    using temporary = temporaryFolder();
    await using worker = startWorker({ inject: "renameat2:error=EINVAL" });
    const at = (name: string) => join(temporary.path, name);
    writeFileSync(at("f"), "f");
    mkdirSync(at("d/e"), { recursive: true });
    symlinkSync("f", at("l"));
    for (const from of ["f", "d"]) expect(await refusal(worker.move(at(from), at("l")))).toBe("exists");
    await worker.move(at("f"), at("g"));
    await worker.move(at("d"), at("h"));
    await worker.move(at("l"), at("m"));
    expect(readdirSync(temporary.path).sort()).toEqual(["g", "h", "m"]);
    expect(readdirSync(at("h"))).toEqual(["e"]);
  });

  test("removes a named draft after cancel, end and SIGTERM without /proc", async () => {
    using temporary = temporaryFolder();
    const path = join(temporary.path, "f");
    writeFileSync(path, "old");
    // Makes the worker's check for /proc fail. Not every architecture has `access`.
    const inject = "?access,faccessat:error=ENOENT";
    const drafts = () => readdirSync(temporary.path).filter((name) => name.startsWith(".caisson-"));
    for (const end of ["cancel", "eof", "SIGTERM", "END"] as const) {
      const worker = startWorker({ inject });
      const exchange = worker.open("WRITE", { path });
      exchange.data(Buffer.alloc(100_000));
      await expect.poll(() => drafts().length).toBe(1);
      if (end === "cancel") {
        exchange.cancel();
        expect(await refusal(exchange.next())).toBe("gone");
      } else if (end === "SIGTERM") {
        const [child] = readFileSync(`/proc/${worker.process.pid}/task/${worker.process.pid}/children`, "utf8").trim().split(" ");
        process.kill(Number(child), "SIGTERM");
        await worker.ended;
      } else if (end === "END") {
        exchange.end();
        expect((await exchange.next()).type).toBe("OK");
      }
      worker.process.stdin?.end();
      await worker.ended;
      expect(readdirSync(temporary.path)).toEqual(["f"]);
      expect(readFileSync(path).length).toBe(end === "END" ? 100_000 : 3);
    }
    await using worker = startWorker({ inject });
    expect(await refusal(worker.write(path, Buffer.from("x"), { how: 2 }))).toBe("exists");
    await worker.write(join(temporary.path, "new"), Buffer.from("x"), { how: 2 });
    expect(readdirSync(temporary.path).sort()).toEqual(["f", "new"]);
  });

  test("copies an unnamed draft that cannot be linked, for new and old files", async () => {
    using temporary = temporaryFolder();
    await using worker = startWorker({ inject: "linkat:error=EPERM" });
    const content = Buffer.alloc(200_001, 7);
    for (const how of [0, 2]) await worker.write(join(temporary.path, `f${how}`), content, { how, mode: 0o640 });
    await worker.write(join(temporary.path, "f0"), content.subarray(1));
    expect(await refusal(worker.write(join(temporary.path, "f2"), content, { how: 2 }))).toBe("exists");
    expect(readdirSync(temporary.path).sort()).toEqual(["f0", "f2"]);
    expect(readFileSync(join(temporary.path, "f0")).length).toBe(200_000);
    expect(statSync(join(temporary.path, "f0")).mode & 0o777).toBe(0o640);
  });

  test.runIf(existsSync("/dev/shm"))("keeps the source and no copy if a move between file systems fails half-way", async () => {
    using temporary = temporaryFolder();
    const other = mkdtempSync(join(sharedMemory(), "caisson-test-"));
    try {
      const from = join(temporary.path, "t");
      mkdirSync(join(from, "sub"), { recursive: true });
      for (let i = 0; i < 20; i++) writeFileSync(join(from, "sub", `f${i}`), "content");
      await using worker = startWorker({ inject: "fchmod:error=EIO:when=9" });
      expect(await refusal(worker.move(from, join(other, "t")))).toBe("io");
      expect(readdirSync(other)).toEqual([]);
      expect(readdirSync(join(from, "sub"))).toHaveLength(20);
    } finally {
      execFileSync("rm", ["-rf", other]);
    }
  });
});

test("a removal stays within its tree when folders turn into links", async () => {
  using temporary = temporaryFolder();
  await using worker = startWorker();
  const at = (name: string) => join(temporary.path, name);
  mkdirSync(at("outside"));
  writeFileSync(at("outside/kept"), "kept");
  const folders = Array.from({ length: 8 }, (_, i) => file(`d${i}/f`));
  const swap = `const fs=require("fs");process.chdir(${JSON.stringify(temporary.path)});process.stdout.write("ready");
    for(let i=0;;i++){const d="t/d"+i%8;fs.symlinkSync("../outside","l"+i);try{fs.renameSync(d,"x"+i)}catch{}
    try{fs.renameSync("l"+i,d)}catch{fs.unlinkSync("l"+i)}}`;
  const swapper = spawn(process.execPath, ["-e", swap], { stdio: ["ignore", "pipe", "inherit"] });
  try {
    await new Promise((resolve) => swapper.stdout.once("data", resolve));
    for (let round = 0; round < tries(300, 60); round++) {
      await refusal(worker.tarIn(at("t"), archive(...folders)));
      await refusal(worker.remove(at("t"), { recursive: true }));
    }
  } finally {
    const swapperExit = new Promise((resolve) => swapper.once("exit", resolve));
    swapper.kill("SIGKILL");
    await swapperExit;
  }
  expect(readdirSync(at("outside"))).toEqual(["kept"]);
});

describe("mutated archives", () => {
  test("all get an answer and write nothing outside the target", async () => {
    using temporary = temporaryFolder();
    await using worker = startWorker();
    const target = join(temporary.path, "target");
    mkdirSync(target);
    writeFileSync(join(temporary.path, "outside"), "untouched");
    const seeds = [
      archive(folder("d/"), file("d/a", "x".repeat(700)), hardLink("d/h", "d/a"), symbolicLink("d/l", "../d")),
      archive(pax({ path: "p/q", size: "3", mtime: "1.5", linkpath: "p" }), file("x", "abc"), pax({ comment: "c" }, "g"), file("y")),
      archive(
        gnuLong("L", "long/name"),
        file("x"),
        gnuLong("K", "long/name"),
        hardLink("h", "x"),
        header({ name: "z", size: base256(0n) }),
      ),
    ];
    let state = 12345;
    const random = (below: number) => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
      return (state >>> 8) % below;
    };
    const outcomes = new Map<string, number>();
    for (let round = 0; round < tries(3000, 1000); round++) {
      const bytes = Buffer.from(seeds[random(seeds.length)] as Buffer);
      for (let changes = 1 + random(4); changes > 0; changes--) mutate(bytes, random);
      if (random(3) > 0) for (let block = 0; block + 512 <= bytes.length; block += 512) resum(bytes, block);
      const cut = random(10) === 0 ? bytes.subarray(0, random(bytes.length)) : bytes;
      const outcome = await refusal(worker.tarIn(target, cut, { bytesMax: 1 << 20, entriesMax: 100, chunkBytes: 1 + random(2000) }));
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
      if (round % 100 === 99) await worker.remove(target, { recursive: true });
    }
    expect([...outcomes.keys()]).toEqual(expect.arrayContaining(["accepted", "invalid", "unsafe", "unsupported", "too_large"]));
    expect(readdirSync(temporary.path).filter((name) => name !== "target")).toEqual(["outside"]);
    expect(readFileSync(join(temporary.path, "outside"), "utf8")).toBe("untouched");
  });
});

test.runIf(isSanitised)("the worker leaks no memory", async () => {
  using temporary = temporaryFolder();
  const worker = startWorker({ findLeaks: true });
  const at = (name: string) => join(temporary.path, name);
  await worker.write(at("a/b/c"), Buffer.alloc(3_000_000), { parents: true });
  await worker.write(at("a/b/c"), Buffer.alloc(2_000_000), { how: 1 });
  linkSync(at("a/b/c"), at("a/again"));
  const packed = await worker.tarOut(temporary.path, { exclude: ["x", "y"] });
  await worker.tarIn(at("copy"), packed);
  for (const bad of [archive(pax({ path: "../x", linkpath: "y" }), file("x")), packed.subarray(0, 700)])
    await refusal(worker.tarIn(at("copy"), bad));
  await worker.list(temporary.path, { depth: 9 });
  await refusal(worker.move(at("a"), at("copy")));
  if (existsSync("/dev/shm")) {
    const other = mkdtempSync(join(sharedMemory(), "caisson-test-"));
    await worker.move(at("a"), join(other, "a"));
    await worker.remove(other, { recursive: true });
  }
  const watching = worker.open("WATCH", { path: temporary.path, recursive: true });
  await watching.next();
  mkdirSync(at("w"));
  await watching.next();
  watching.cancel();
  expect(
    await refusal(
      (async () => {
        for (;;) await watching.next();
      })(),
    ),
  ).toBe("gone");
  await worker.remove(at("copy"), { recursive: true });
  worker.process.stdin?.end();
  expect(await worker.ended).toMatchObject({ code: 0, stderr: "" });
});

function mutate(bytes: Buffer, random: (below: number) => number): void {
  const at = random(bytes.length);
  switch (random(5)) {
    case 0:
      bytes[at] = random(256);
      break;
    case 1:
      bytes.write(["../", "/", "..", "\0", "99999999999", "-1"][random(6)] as string, at);
      break;
    case 2:
      // The type of an entry.
      bytes.write("01234567xgLKSVZ"[random(15)] as string, Math.floor(at / 512) * 512 + 156);
      break;
    case 3:
      bytes.copy(bytes, at, random(bytes.length), random(bytes.length));
      break;
    default:
      bytes.write((random(1 << 24) >>> 0).toString(8).padStart(11, "0"), Math.floor(at / 512) * 512 + 124);
  }
}

/** Writes the right checksum into a block that looks like a header. */
function resum(bytes: Buffer, at: number): void {
  if (!bytes.subarray(at + 257, at + 262).equals(Buffer.from("ustar"))) return;
  bytes.fill(" ", at + 148, at + 156);
  let sum = 0;
  for (let i = 0; i < 512; i++) sum += bytes[at + i] as number;
  bytes.write(`${sum.toString(8).padStart(6, "0")}\0 `, at + 148);
}
