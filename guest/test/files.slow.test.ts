import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  appendFileSync,
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { sharedMemory } from "../../test/support/memory-folder.ts";
import { tries } from "../../test/support/thorough.ts";
import { guestBinary, type Refused, refusal, startWorker, temporaryFolder } from "./files-client.ts";

const asRoot = process.getuid?.() === 0;
const _text = (bytes: Uint8Array) => Buffer.from(bytes).toString();

describe("stat and list", () => {
  test("describes a file, and follows a link only on request", async () => {
    using folder = temporaryFolder();
    await using worker = startWorker();
    const path = join(folder.path, "a");
    writeFileSync(path, "12345", { mode: 0o640 });
    chmodSync(path, 0o4640);
    utimesSync(path, 1_600_000_000.5, 1_600_000_000.5);
    symlinkSync("a", join(folder.path, "l"));
    expect(await worker.stat(path)).toMatchObject({ name: path, kind: 1, sizeBytes: 5, mode: 0o4640, modifiedMs: 1_600_000_000_500 });
    expect(await worker.stat(join(folder.path, "l"))).toMatchObject({ kind: 3, linkTarget: "a" });
    expect(await worker.stat(join(folder.path, "l"), { follow: true })).toMatchObject({ kind: 1, sizeBytes: 5 });
    expect(await worker.stat(`${folder.path}/`)).toMatchObject({ kind: 2, name: folder.path });
  });

  test("bounds numbers that the host cannot hold", async () => {
    using folder = temporaryFolder();
    await using worker = startWorker();
    const path = join(folder.path, "far");
    writeFileSync(path, "");
    execFileSync("touch", ["-d", "@9000000000", path]);
    expect((await worker.stat(path)).modifiedMs).toBeLessThanOrEqual(Number.MAX_SAFE_INTEGER);
  });

  test("refuses relative, missing, NUL and overlong paths as invalid", async () => {
    await using worker = startWorker();
    const field = (bytes: Buffer) => {
      const head = Buffer.alloc(5);
      head[0] = 1;
      head.writeUInt32LE(bytes.length, 1);
      return Buffer.concat([head, bytes]);
    };
    for (const path of ["etc/passwd", "", "/a\0b", `/${"x".repeat(5000)}`]) {
      expect(await refusal(worker.openRaw("STAT", field(Buffer.from(path))).next()), JSON.stringify(path.slice(0, 20))).toBe("invalid");
    }
    expect(await refusal(worker.openRaw("STAT", Buffer.from([1, 255, 255, 0, 0, 47])).next())).toBe("invalid");
    expect(await refusal(worker.openRaw("STAT", Buffer.alloc(0)).next())).toBe("invalid");
    expect((await worker.stat("/")).kind).toBe(2);
  });

  test("names the operation and the path in errors, and shortens a long path", async () => {
    await using worker = startWorker();
    const short = await worker.stat("/nowhere\nat all").catch((error: Refused) => error);
    expect(short).toMatchObject({ code: "not_found", errno: 2, message: expect.stringContaining("stat /nowhere?at all: ") });
    const long = await worker.stat(`/${"x/".repeat(2000)}end`).catch((error: Refused) => error);
    expect(long).toMatchObject({ code: "not_found", message: expect.stringMatching(/^stat \.\.\.x.*\/end: /) });
    expect((long as Refused).message.length).toBeLessThan(800);
  });

  test("lists to a depth and a limit, and never through links", async () => {
    using folder = temporaryFolder();
    await using worker = startWorker();
    mkdirSync(join(folder.path, "d/e/f"), { recursive: true });
    writeFileSync(join(folder.path, "d/file"), "x");
    symlinkSync("/", join(folder.path, "root"));
    execFileSync("mkfifo", [join(folder.path, "fifo")]);
    const names = async (depth: number) => (await worker.list(folder.path, { depth })).entries.map(({ name, kind }) => `${name}:${kind}`);
    expect(await names(1)).toEqual(["d:2", "fifo:4", "root:3"]);
    expect(await names(2)).toEqual(["d:2", "d/e:2", "d/file:1", "fifo:4", "root:3"]);
    expect(await names(99)).toEqual(["d:2", "d/e:2", "d/e/f:2", "d/file:1", "fifo:4", "root:3"]);
    expect(await worker.list(folder.path, { depth: 9, entriesMax: 6 })).toMatchObject({ truncated: false });
    const cut = await worker.list(folder.path, { depth: 9, entriesMax: 5 });
    expect(cut.entries).toHaveLength(5);
    expect(cut.truncated).toBe(true);
    expect(await refusal(worker.list(join(folder.path, "d/file")))).toBe("not_directory");
    expect(await refusal(worker.list(join(folder.path, "nothing")))).toBe("not_found");
  });

  test("lists names that are not UTF-8", async () => {
    using folder = temporaryFolder();
    await using worker = startWorker();
    writeFileSync(Buffer.concat([Buffer.from(`${folder.path}/`), Buffer.from([0xff, 0xfe, 0x41])]), "x");
    const { entries } = await worker.list(folder.path);
    expect(entries.map(({ name }) => name)).toEqual(["\ufffd\ufffdA"]);
  });
});

describe("create, move, remove", () => {
  test("creates folders with parents and exact modes", async () => {
    using folder = temporaryFolder();
    await using worker = startWorker();
    const deep = join(folder.path, "a/b/c");
    expect(await refusal(worker.mkdir(deep))).toBe("not_found");
    await worker.mkdir(deep, { parents: true, mode: 0o2775 });
    expect(statSync(deep).mode & 0o7777).toBe(0o2775);
    expect(statSync(join(folder.path, "a")).mode & 0o777).toBe(0o755);
    await worker.mkdir(deep, { parents: true });
    expect(await refusal(worker.mkdir(deep))).toBe("exists");
    writeFileSync(join(folder.path, "file"), "");
    expect(await refusal(worker.mkdir(join(folder.path, "file/x"), { parents: true }))).toBe("not_directory");
    expect(await refusal(worker.mkdir(join(folder.path, "file"), { parents: true }))).toBe("exists");
  });

  test("moves, and replaces only on request", async () => {
    using folder = temporaryFolder();
    await using worker = startWorker();
    const at = (name: string) => join(folder.path, name);
    writeFileSync(at("a"), "a");
    writeFileSync(at("b"), "b");
    expect(await refusal(worker.move(at("a"), at("b")))).toBe("exists");
    expect(readFileSync(at("b"), "utf8")).toBe("b");
    await worker.move(at("a"), at("b"), { replace: true });
    expect(readFileSync(at("b"), "utf8")).toBe("a");
    expect(await refusal(worker.move(at("a"), at("c")))).toBe("not_found");
    mkdirSync(at("d/e"), { recursive: true });
    expect(await refusal(worker.move(at("d"), at("d/e/f")))).toBe("invalid");
    expect(await refusal(worker.move(at("b"), at("d"), { replace: true }))).toBe("is_directory");
    symlinkSync("nowhere", at("l"));
    await worker.move(at("l"), at("m"));
    expect(readlinkSync(at("m"))).toBe("nowhere");
  });

  test("removes without following links", async () => {
    using folder = temporaryFolder();
    await using worker = startWorker();
    const at = (name: string) => join(folder.path, name);
    mkdirSync(at("keep/deep"), { recursive: true });
    writeFileSync(at("keep/file"), "kept");
    mkdirSync(at("go/sub"), { recursive: true });
    symlinkSync(at("keep"), at("go/sub/link"));
    symlinkSync(at("keep"), at("link"));
    expect(await refusal(worker.remove(at("go")))).toBe("not_empty");
    await worker.remove(at("go"), { recursive: true });
    await worker.remove(`${at("link")}/`, { recursive: true });
    expect(readdirSync(folder.path)).toEqual(["keep"]);
    expect(readFileSync(at("keep/file"), "utf8")).toBe("kept");
    expect(await refusal(worker.remove(at("go")))).toBe("not_found");
    expect(await refusal(worker.remove("/"))).toBe("invalid");
    expect(await refusal(worker.remove(`${folder.path}/..`, { recursive: true }))).toBe("invalid");
  });

  test("removes a tree deeper than any path, and one with many entries", { timeout: 300_000 }, async () => {
    using folder = temporaryFolder();
    await using worker = startWorker();
    const deep = `process.chdir(${JSON.stringify(folder.path)});require("fs").mkdirSync("deep");process.chdir("deep");
      for(let i=0;i<${tries(10_000, 3000)};i++){require("fs").mkdirSync("d");require("fs").writeFileSync("f","");process.chdir("d")}`;
    execFileSync(process.execPath, ["-e", deep]);
    const { truncated } = await worker.list(join(folder.path, "deep"), { depth: 100_000, entriesMax: 100_000 });
    expect(truncated).toBe(true);
    await worker.remove(join(folder.path, "deep"), { recursive: true });
    mkdirSync(join(folder.path, "wide"));
    for (let i = 0; i < tries(5000, 1000); i++) mkdirSync(join(folder.path, "wide", `entry-${i}`));
    for (let i = 0; i < tries(5000, 1000); i += 2) writeFileSync(join(folder.path, "wide", `entry-${i}`, "x"), "");
    await worker.remove(join(folder.path, "wide"), { recursive: true });
    expect(readdirSync(folder.path)).toEqual([]);
  });

  test.runIf(asRoot)("names an unreadable subfolder, and removes an empty one", async () => {
    using folder = temporaryFolder();
    await using worker = startWorker({ uid: 4242 });
    const at = (name: string) => join(folder.path, name);
    mkdirSync(at("t/empty"), { recursive: true });
    mkdirSync(at("t/locked"));
    writeFileSync(at("t/locked/x"), "");
    for (const name of ["t", "t/empty", "t/locked"]) chownSync(at(name), 4242, 4242);
    chmodSync(at("t/empty"), 0);
    chmodSync(at("t/locked"), 0);
    const error = await worker.remove(at("t"), { recursive: true }).catch((caught: Refused) => caught);
    expect(error).toMatchObject({ code: "denied", message: expect.stringContaining("t/locked") });
    expect(readdirSync(at("t"))).toEqual(["locked"]);
  });

  test.runIf(asRoot && existsSync("/dev/shm"))("moves between file systems, completely or not at all", async () => {
    using folder = temporaryFolder();
    await using worker = startWorker();
    const other = mkdtempSync(join(sharedMemory(), "caisson-test-"));
    try {
      const at = (name: string) => join(folder.path, name);
      mkdirSync(at("t/ro/deep"), { recursive: true });
      writeFileSync(at("t/ro/one"), "one", { mode: 0o600 });
      linkSync(at("t/ro/one"), at("t/ro/two"));
      writeFileSync(at("t/ro/large"), randomBytes(3_000_000));
      symlinkSync("../one", at("t/ro/deep/link"));
      execFileSync("mkfifo", [at("t/fifo")]);
      chownSync(at("t/ro/one"), 1234, 1235);
      chmodSync(at("t/ro"), 0o550);
      utimesSync(at("t/ro"), 1_500_000_000, 1_500_000_000);
      const large = readFileSync(at("t/ro/large"));
      await worker.move(at("t"), `${other}/t`);
      expect(existsSync(at("t"))).toBe(false);
      expect(readdirSync(other)).toEqual(["t"]);
      expect(lstatSync(`${other}/t/ro/one`)).toMatchObject({ uid: 1234, gid: 1235, nlink: 2 });
      expect(statSync(`${other}/t/ro`)).toMatchObject({ mtimeMs: 1_500_000_000_000 });
      expect(statSync(`${other}/t/ro`).mode & 0o777).toBe(0o550);
      expect(readlinkSync(`${other}/t/ro/deep/link`)).toBe("../one");
      expect(lstatSync(`${other}/t/fifo`).isFIFO()).toBe(true);
      expect(readFileSync(`${other}/t/ro/large`).equals(large)).toBe(true);
      writeFileSync(at("f"), "new");
      expect(await refusal(worker.move(at("f"), `${other}/t`))).toBe("exists");
      expect(await refusal(worker.move(at("f"), `${other}/t`, { replace: true }))).toBe("is_directory");
      expect(readdirSync(other)).toEqual(["t"]);
      await worker.move(at("f"), `${other}/f`);
      expect(readFileSync(`${other}/f`, "utf8")).toBe("new");
    } finally {
      execFileSync("rm", ["-rf", other]);
    }
  });
});

describe("the worker", () => {
  test("ends at end of file, and fails after a malformed frame", async () => {
    const worker = startWorker();
    worker.process.stdin?.end();
    expect(await worker.ended).toMatchObject({ code: 0 });
    for (const bytes of [
      [0xff, 0xff, 0xff, 0xff, 0x20, 0, 0, 0, 1, 0, 0, 0],
      [0, 0, 0, 0, 0x20, 1, 0, 0, 1, 0, 0, 0],
      [0, 0, 0, 0, 0x7f, 0, 0, 0, 1, 0, 0, 0],
      [0, 0, 0, 0, 0x10, 0, 0, 0, 1, 0, 0, 0],
    ]) {
      const other = startWorker();
      other.raw(Buffer.from(bytes));
      expect(await other.ended).toMatchObject({ code: 1, signal: null });
    }
  });

  test("ignores frames left over from a closed stream", async () => {
    using folder = temporaryFolder();
    await using worker = startWorker();
    const exchange = worker.open("WRITE", { path: join(folder.path, "no/such/folder") });
    for (let i = 0; i < 10; i++) exchange.data(randomBytes(1000));
    exchange.end();
    exchange.cancel();
    expect(await refusal(exchange.next())).toBe("not_found");
    expect((await worker.stat("/")).kind).toBe(2);
  });

  test("reads a growing file to its old or new end", async () => {
    using folder = temporaryFolder();
    await using worker = startWorker();
    const path = join(folder.path, "log");
    writeFileSync(path, Buffer.alloc(1_048_576));
    const exchange = worker.open("READ", { path });
    await exchange.next();
    appendFileSync(path, "more");
    exchange.credit(1_000_000);
    let bytes = 0;
    for (;;) {
      const frame = await exchange.next();
      if (frame.type === "END") break;
      bytes += frame.payload.length;
    }
    expect(bytes === 1_048_576 || bytes === 1_048_580).toBe(true);
    expect(guestBinary).toContain("caisson-guest");
  });
});

function _openFiles(pid: number): string {
  return readdirSync(`/proc/${pid}/fd`)
    .map((fd) => {
      try {
        return readlinkSync(`/proc/${pid}/fd/${fd}`);
      } catch {
        return "";
      }
    })
    .join("\n");
}
