import { randomBytes } from "node:crypto";
import { existsSync, lstatSync, readdirSync, readFileSync, readlinkSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { archive, base256, file, folder, hardLink, header, pax, symbolicLink } from "./files-archive.ts";
import { refusal, startWorker, temporaryFolder } from "./files-client.ts";
import { asRoot, describeTree, makeTree, tar } from "./files-tree.ts";

describe("unpacking", () => {
  test("keeps modes without set-id bits, times and links", async () => {
    using temporary = temporaryFolder();
    await using worker = startWorker();
    const target = join(temporary.path, "new/target");
    const tarball = archive(
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
    expect(await worker.tarIn(target, tarball, { chunkBytes: 7 })).toEqual({ entries: 9, bytes: 18 });
    expect(statSync(join(target, "ro"))).toMatchObject({ mtimeMs: 1_400_000_000_000 });
    expect(statSync(join(target, "ro")).mode & 0o7777).toBe(0o555);
    expect(statSync(join(target, "ro/run"))).toMatchObject({ mtimeMs: 1_500_000_000_000, nlink: 2 });
    expect(statSync(join(target, "ro/run")).mode & 0o7777).toBe(0o755);
    expect(readlinkSync(join(target, "ro/link"))).toBe("/etc/passwd");
    expect(readFileSync(join(target, "a/b/c"), "utf8")).toBe("implicit folders");
    expect(statSync(join(target, "precise")).mtimeMs).toBe(1_300_000_000_250);
    expect(statSync(join(target, "v7folder")).isDirectory()).toBe(true);
  });

  test("replaces earlier files and links with later entries", async () => {
    using temporary = temporaryFolder();
    await using worker = startWorker();
    const tarball = archive(
      symbolicLink("a", "nowhere"),
      file("a", "one"),
      file("a", "two"),
      symbolicLink("b", "x"),
      symbolicLink("b", "y"),
      hardLink("a", "a"),
      hardLink("b", "a"),
    );
    await worker.tarIn(temporary.path, tarball);
    expect(readFileSync(join(temporary.path, "b"), "utf8")).toBe("two");
    expect(lstatSync(join(temporary.path, "b")).nlink).toBe(2);
  });

  test("enforces limits on bytes and entries", async () => {
    using temporary = temporaryFolder();
    await using worker = startWorker();
    const tarball = archive(file("a", "12345"), file("b", "12345"));
    expect(await worker.tarIn(temporary.path, tarball, { bytesMax: 10, entriesMax: 2 })).toEqual({ entries: 2, bytes: 10 });
    expect(await refusal(worker.tarIn(temporary.path, tarball, { bytesMax: 9 }))).toBe("too_large");
    expect(await refusal(worker.tarIn(temporary.path, tarball, { entriesMax: 1 }))).toBe("too_large");
    // Declared but never sent: refused because of the header alone.
    expect(await refusal(worker.tarIn(temporary.path, header({ name: "bomb", size: base256(1n << 50n) }), { bytesMax: 1 << 30 }))).toBe(
      "too_large",
    );
    const descriptions = archive(...Array.from({ length: 100 }, () => pax({ comment: "x" })), file("a"));
    expect(await refusal(worker.tarIn(temporary.path, descriptions, { entriesMax: 2 }))).toBe("too_large");
  });

  test("strips components, even in hard links", async () => {
    using temporary = temporaryFolder();
    await using worker = startWorker();
    const tarball = archive(folder("top/"), file("top/in/a", "x"), hardLink("top/in/b", "top/in/a"), file("alone"));
    await worker.tarIn(temporary.path, tarball, { stripComponents: 1 });
    expect(readdirSync(temporary.path)).toEqual(["in"]);
    expect(lstatSync(join(temporary.path, "in/b")).nlink).toBe(2);
    expect(await refusal(worker.tarIn(temporary.path, archive(file("a/../../x")), { stripComponents: 2 }))).toBe("unsafe");
  });

  test.runIf(asRoot)("keeps owners only for root", async () => {
    using temporary = temporaryFolder();
    await using user = startWorker({ uid: 4242 });
    await using root = startWorker();
    const tarball = archive(folder("d", { uid: 7, gid: 8 }), file("d/f", "x", { uid: 5, gid: 6, mode: 0o4755 }));
    expect(await refusal(user.tarIn(temporary.path, tarball, { keepOwner: true }))).toBe("denied");
    await root.tarIn(temporary.path, tarball, { keepOwner: true });
    expect(statSync(join(temporary.path, "d"))).toMatchObject({ uid: 7, gid: 8 });
    expect(statSync(join(temporary.path, "d/f"))).toMatchObject({ uid: 5, gid: 6 });
    expect(statSync(join(temporary.path, "d/f")).mode & 0o7777).toBe(0o755);
    await user.tarIn(join(temporary.path, "u"), tarball);
    expect(statSync(join(temporary.path, "u/d/f")).uid).toBe(4242);
  });

  test("leaves only complete files if the stream is cancelled or breaks", async () => {
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
    test(`reads what GNU tar writes (${format})`, async () => {
      using temporary = temporaryFolder();
      await using worker = startWorker();
      const source = join(temporary.path, "source");
      makeTree(source, { longNames: format === "pax" || format === "gnu" || format === "oldgnu" });
      const tarball = tar("-C", source, `--format=${format}`, "-c", ".");
      await worker.tarIn(join(temporary.path, "copy"), tarball);
      expect(describeTree(join(temporary.path, "copy"))).toBe(describeTree(source));
    });
  }
});
