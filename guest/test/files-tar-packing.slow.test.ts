import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { END } from "./files-archive.ts";
import { type Refused, refusal, startWorker, temporaryFolder } from "./files-client.ts";
import { asRoot, describeTree, makeTree, tar } from "./files-tree.ts";

describe("packing", () => {
  test("writes an archive that GNU tar and we unpack to the same tree", async () => {
    using temporary = temporaryFolder();
    await using worker = startWorker();
    const source = join(temporary.path, "source");
    makeTree(source, { longNames: true });
    const tarball = await worker.tarOut(source);
    mkdirSync(join(temporary.path, "gnu"));
    writeFileSync(join(temporary.path, "a.tar"), tarball);
    tar("--warning=no-unknown-keyword", "-C", join(temporary.path, "gnu"), "-xpf", join(temporary.path, "a.tar"));
    expect(describeTree(join(temporary.path, "gnu"))).toBe(describeTree(source));
    await worker.tarIn(join(temporary.path, "ours"), tarball);
    expect(describeTree(join(temporary.path, "ours"))).toBe(describeTree(source));
    expect((await worker.tarOut(source)).equals(tarball)).toBe(true);
    expect(tarball.subarray(-1024).equals(END)).toBe(true);
  });

  test("sorts by name, and leaves out excluded files and sockets", async () => {
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

  test("accepts a single file or link", async () => {
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

  test("enforces the byte limit exactly", async () => {
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

  test("stores numbers that ustar cannot hold", async () => {
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

  test("pads a file that shrinks, and cuts one that grows", async () => {
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

  test.runIf(asRoot)("names a file that cannot be read", async () => {
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

  test("ends when cancelled, and the worker continues", async () => {
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
