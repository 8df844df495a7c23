import { execFileSync } from "node:child_process";
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
import { archive, base256, END, file, folder, hardLink, header, pax, symbolicLink } from "./files-archive.ts";
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
