import { execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  chmodSync,
  chownSync,
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
import { refusal, startWorker, temporaryFolder } from "./files-client.ts";

const asRoot = process.getuid?.() === 0;
const text = (bytes: Uint8Array) => Buffer.from(bytes).toString();

describe("read", () => {
  test("accepts an offset, a length, and a range past the end", async () => {
    using folder = temporaryFolder();
    await using worker = startWorker();
    const path = join(folder.path, "a");
    writeFileSync(path, "0123456789");
    expect(text(await worker.read(path))).toBe("0123456789");
    expect(text(await worker.read(path, { offset: 3 }))).toBe("3456789");
    expect(text(await worker.read(path, { offset: 3, length: 4 }))).toBe("3456");
    expect(text(await worker.read(path, { offset: 30 }))).toBe("");
    expect(text(await worker.read("/proc/self/status"))).toContain("Pid:");
  });

  test("sends a file within the window, and continues with credit", async () => {
    using folder = temporaryFolder();
    await using worker = startWorker();
    const path = join(folder.path, "large");
    const content = randomBytes(3_000_001);
    writeFileSync(path, content);
    const exchange = worker.open("READ", { path });
    await exchange.next();
    const chunks: Buffer[] = [];
    const take = async (bytes: number) => {
      let left = bytes;
      while (left > 0) {
        const { payload } = await exchange.next();
        chunks.push(payload);
        left -= payload.length;
      }
      expect(left).toBe(0);
    };
    await take(1_048_576);
    // The window is used up; the worker sends nothing more until it gets credit.
    expect(exchange.waiting).toBe(0);
    exchange.credit(100);
    await take(100);
    expect(exchange.waiting).toBe(0);
    exchange.credit(4_000_000_000);
    await take(content.length - 1_048_676);
    expect((await exchange.next()).type).toBe("END");
    expect(Buffer.concat(chunks).equals(content)).toBe(true);
  });

  test("refuses FIFOs, devices, sockets and folders without blocking", async () => {
    using folder = temporaryFolder();
    await using worker = startWorker();
    const at = (name: string) => join(folder.path, name);
    execFileSync("mkfifo", [at("fifo")]);
    symlinkSync("fifo", at("link"));
    const server = createServer().listen(at("socket"));
    for (const name of ["fifo", "link", "socket"]) expect(await refusal(worker.read(at(name)))).toBe("unsupported");
    expect(await refusal(worker.read("/dev/zero"))).toBe("unsupported");
    expect(await refusal(worker.read(folder.path))).toBe("is_directory");
    expect(await refusal(worker.write(at("fifo"), Buffer.from("x")))).toBe("unsupported");
    expect(await refusal(worker.write(at("fifo"), Buffer.from("x"), { how: 1 }))).toBe("unsupported");
    await new Promise((resolve) => server.close(resolve));
    // The check does not wake a writer that is blocked in open().
    const writer = spawn("sh", ["-c", `echo done > "${at("fifo")}"`]);
    expect(await refusal(worker.read(at("fifo")))).toBe("unsupported");
    expect(execFileSync("cat", [at("fifo")], { encoding: "utf8" })).toBe("done\n");
    await new Promise((resolve) => writer.on("close", resolve));
  });

  test("ends when cancelled, and the worker continues", async () => {
    using folder = temporaryFolder();
    await using worker = startWorker();
    const path = join(folder.path, "large");
    writeFileSync(path, "");
    truncateSync(path, 1e12);
    const exchange = worker.open("READ", { path });
    await exchange.next();
    exchange.cancel();
    const rest = async () => {
      for (;;) await exchange.next();
    };
    expect(await refusal(rest())).toBe("gone");
    expect((await worker.stat(path)).sizeBytes).toBe(1e12);
  });

  test("answers a second request during a transfer with `busy`", async () => {
    using folder = temporaryFolder();
    await using worker = startWorker();
    const writing = worker.open("WRITE", { path: join(folder.path, "a") });
    expect(await refusal(worker.open("STAT", { path: "/" }).next())).toBe("busy");
    writing.data(Buffer.from("a"));
    writing.end();
    expect((await writing.next()).type).toBe("OK");
    const ahead = [1, 2, 3].map(() => worker.stat("/"));
    expect((await Promise.all(ahead)).map(({ kind }) => kind)).toEqual([2, 2, 2]);
  });
});

describe("write", () => {
  test("creates, replaces and appends, and can refuse to replace", async () => {
    using folder = temporaryFolder();
    await using worker = startWorker();
    const path = join(folder.path, "a");
    expect(await worker.write(path, Buffer.from("first"))).toBe(5);
    expect(statSync(path).mode & 0o7777).toBe(0o644);
    chmodSync(path, 0o751);
    const before = statSync(path).ino;
    await worker.write(path, Buffer.from("second"));
    expect(statSync(path).mode & 0o7777).toBe(0o751);
    expect(statSync(path).ino).not.toBe(before);
    await worker.write(path, Buffer.from("third"), { mode: 0o600 });
    expect(statSync(path).mode & 0o7777).toBe(0o600);
    await worker.write(path, Buffer.from("+"), { how: 1 });
    expect(readFileSync(path, "utf8")).toBe("third+");
    expect(await refusal(worker.write(path, Buffer.from("x"), { how: 2 }))).toBe("exists");
    await worker.write(join(folder.path, "b"), Buffer.from("x"), { how: 2 });
    await worker.write(join(folder.path, "c"), Buffer.from("y"), { how: 1 });
    await worker.write(join(folder.path, "empty"), Buffer.alloc(0));
    expect(await refusal(worker.write(join(folder.path, "n/o/p"), Buffer.from("x")))).toBe("not_found");
    await worker.write(join(folder.path, "n/o/p"), Buffer.from("x"), { parents: true });
    expect(await refusal(worker.write(folder.path, Buffer.from("x")))).toBe("is_directory");
    expect(await refusal(worker.write(path, Buffer.from("x"), { how: 7 }))).toBe("invalid");
    expect(readdirSync(folder.path).sort()).toEqual(["a", "b", "c", "empty", "n"]);
  });

  test("replaces the target of a link, even if it does not exist yet", async () => {
    using folder = temporaryFolder();
    await using worker = startWorker();
    const at = (name: string) => join(folder.path, name);
    mkdirSync(at("d"));
    writeFileSync(at("d/real"), "old");
    symlinkSync("d/real", at("one"));
    symlinkSync(at("one"), at("two"));
    await worker.write(at("two"), Buffer.from("new"));
    expect(readFileSync(at("d/real"), "utf8")).toBe("new");
    expect(lstatSync(at("two")).isSymbolicLink()).toBe(true);
    symlinkSync("d/later", at("dangling"));
    await worker.write(at("dangling"), Buffer.from("made"));
    expect(readFileSync(at("d/later"), "utf8")).toBe("made");
    expect(await refusal(worker.write(at("dangling"), Buffer.from("x"), { how: 2 }))).toBe("exists");
    symlinkSync("loop", at("loop"));
    expect(await refusal(worker.write(at("loop"), Buffer.from("x")))).toBe("invalid");
    expect(readdirSync(at("d")).sort()).toEqual(["later", "real"]);
  });

  test("stores a large file completely, with credit for received bytes", async () => {
    using folder = temporaryFolder();
    await using worker = startWorker();
    const content = randomBytes(10_000_003);
    const path = join(folder.path, "large");
    expect(await worker.write(path, content)).toBe(content.length);
    expect(readFileSync(path).equals(content)).toBe(true);
    await worker.write(path, content, { how: 1 });
    expect(readFileSync(path).equals(Buffer.concat([content, content]))).toBe(true);
    expect((await worker.read(path)).length).toBe(20_000_006);
  });

  for (const how of [0, 1, 2]) {
    test(`keeps the old content and nothing else if the stream breaks (how ${how})`, async () => {
      using folder = temporaryFolder();
      const path = join(folder.path, "a");
      if (how !== 2) writeFileSync(path, "old");
      const unchanged = () => {
        expect(readdirSync(folder.path)).toEqual(how === 2 ? [] : ["a"]);
        if (how !== 2) expect(readFileSync(path, "utf8")).toBe("old");
      };
      {
        await using worker = startWorker();
        const exchange = worker.open("WRITE", { path, how });
        exchange.data(randomBytes(200_000));
        exchange.cancel();
        expect(await refusal(exchange.next())).toBe("gone");
        unchanged();
        expect((await worker.stat(folder.path)).kind).toBe(2);
      }
      for (const end of ["eof", "SIGTERM", "SIGKILL"] as const) {
        const worker = startWorker();
        const exchange = worker.open("WRITE", { path, how });
        // Credit returns when the worker has taken the bytes: then it is in the middle of the write.
        for (let i = 0; i < 4; i++) exchange.data(randomBytes(262_144));
        await expect.poll(() => openFiles(worker.process.pid as number)).toMatch(/caisson-test-files/);
        if (end === "eof") worker.process.stdin?.end();
        else worker.process.kill(end);
        await worker.ended;
        unchanged();
      }
    });
  }

  test.runIf(asRoot)("refuses a write-protected file, and keeps the owner when root writes", async () => {
    using folder = temporaryFolder();
    await using user = startWorker({ uid: 4242 });
    await using root = startWorker();
    const path = join(folder.path, "a");
    writeFileSync(path, "mine");
    chownSync(path, 4242, 4243);
    chmodSync(path, 0o444);
    expect(await refusal(user.write(path, Buffer.from("x")))).toBe("denied");
    await root.write(path, Buffer.from("x"));
    expect(statSync(path)).toMatchObject({ uid: 4242, gid: 4243 });
    chmodSync(folder.path, 0o755);
    expect(await refusal(user.write(join(folder.path, "new"), Buffer.from("x")))).toBe("denied");
    expect(await refusal(user.read("/etc/shadow"))).toBe("denied");
  });

  test.runIf(asRoot)("fails with no_space on a full file system, and keeps the old content", async () => {
    using folder = temporaryFolder();
    const mount = join(folder.path, "small");
    mkdirSync(mount);
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", mount]);
    try {
      await using worker = startWorker();
      const path = join(mount, "a");
      writeFileSync(path, "old");
      expect(await refusal(worker.write(path, Buffer.alloc(2_000_000)))).toBe("no_space");
      expect(
        await refusal(
          worker.write(path, Buffer.alloc(700_000), { how: 1 }).then(() => worker.write(path, Buffer.alloc(700_000), { how: 1 })),
        ),
      ).toBe("no_space");
      expect(statSync(path).size).toBe(700_003);
      expect(readdirSync(mount)).toEqual(["a"]);
    } finally {
      execFileSync("umount", ["-l", mount]);
    }
  });
});

function openFiles(pid: number): string {
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
