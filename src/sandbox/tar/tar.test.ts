import { execFileSync } from "node:child_process";
import { chmod, link, lstat, mkdir, mkdtemp, readdir, readFile, readlink, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { tries } from "../../../test/support/thorough.ts";
import { packFolder } from "./pack-folder.ts";
import { readTar } from "./read-tar.ts";
import { encodeTarHeader, padding, type TarHeader, tarEnd } from "./tar-header.ts";
import { unpackFolder } from "./unpack-folder.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "caisson-test-tar-"));
  await mkdir(join(folder, "from"));
  await mkdir(join(folder, "to"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const base = { mode: 0o644, modifiedMs: 1_700_000_000_000, linkTarget: "", sizeBytes: 0 };
type Part = Partial<TarHeader> & { name: string; content?: string };
function archive(...parts: Part[]): Buffer {
  const blocks = parts.flatMap(({ content = "", ...part }) => {
    const bytes = Buffer.from(content);
    const header = encodeTarHeader({ kind: "file", ...base, ...part, sizeBytes: bytes.length });
    return [header, bytes, padding(bytes.length)];
  });
  return Buffer.concat([...blocks, tarEnd]);
}
async function collect(pieces: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const all: Uint8Array[] = [];
  for await (const piece of pieces) all.push(piece);
  return Buffer.concat(all);
}

test("round-trips a folder with modes, times, links and long names", async () => {
  const from = join(folder, "from");
  const long = `${"n".repeat(120)} ☃`;
  await mkdir(join(from, "sub", "deep"), { recursive: true });
  await writeFile(join(from, "sub", "deep", long), "long");
  await writeFile(join(from, "tool"), "#!/bin/sh\n");
  await chmod(join(from, "tool"), 0o755);
  await writeFile(join(from, "big"), Buffer.alloc(1_000_001, "b"));
  await symlink("sub/deep", join(from, "link"));
  const packed = await collect(packFolder(from));
  const result = await unpackFolder(join(folder, "to"), packed);
  expect(result.skipped).toEqual([]);
  expect(await readFile(join(folder, "to", "sub", "deep", long), "utf8")).toBe("long");
  expect((await lstat(join(folder, "to", "tool"))).mode & 0o777).toBe(0o755);
  expect(await readlink(join(folder, "to", "link"))).toBe("sub/deep");
  expect((await lstat(join(folder, "to", "big"))).mtimeMs).toBeCloseTo((await lstat(join(from, "big"))).mtimeMs, -2);
  await writeFile(join(folder, "a.tar"), packed);
  expect(
    execFileSync("tar", ["tf", join(folder, "a.tar")], { encoding: "utf8" })
      .split("\n")
      .filter(Boolean),
  ).toHaveLength(6);
});

test("reads archives of tar(1): GNU long names, hard links, pax", async () => {
  const from = join(folder, "from");
  await writeFile(join(from, "x".repeat(200)), "long");
  await writeFile(join(from, "one"), "same");
  await link(join(from, "one"), join(from, "two"));
  for (const format of ["gnu", "pax", "ustar"]) {
    const skip = format === "ustar" ? ["--exclude=xxx*"] : [];
    const tarball = execFileSync("tar", ["cf", "-", `--format=${format}`, ...skip, "-C", from, "."], { maxBuffer: 1e8 });
    const to = await mkdtemp(join(folder, "to-"));
    await unpackFolder(to, tarball);
    expect(await readFile(join(to, "two"), "utf8")).toBe("same");
    if (format !== "ustar") expect(await readFile(join(to, "x".repeat(200)), "utf8")).toBe("long");
  }
});

test("packs a single file under its own name", async () => {
  await writeFile(join(folder, "from", "only"), "me");
  const names: string[] = [];
  for await (const entry of readTar(await collect(packFolder(join(folder, "from", "only"))))) names.push(entry.name);
  expect(names).toEqual(["only"]);
});

describe("unpackFolder", () => {
  const tricks: Record<string, Part[]> = {
    "an absolute name": [{ name: "/tmp/caisson-test-evil", content: "x" }],
    "a name with ..": [{ name: "../evil", content: "x" }],
    "a name with .. in the middle": [{ name: "a/../../evil", content: "x" }],
    "a file through a link of the archive": [
      { name: "l", kind: "link", linkTarget: "sub" },
      { name: "l/evil", content: "x" },
    ],
    "a folder through a link": [
      { name: "l", kind: "link", linkTarget: "sub" },
      { name: "l/evil", kind: "directory" },
    ],
    "a hard link to something outside": [{ name: "h", kind: "hardLink", linkTarget: "../outside" }],
    "a hard link to what was there before": [{ name: "h", kind: "hardLink", linkTarget: "before" }],
    "a hard link to a link": [
      { name: "l", kind: "link", linkTarget: "before" },
      { name: "h", kind: "hardLink", linkTarget: "l" },
    ],
  };
  test.each(Object.entries(tricks))("rejects %s and writes nothing outside", async (_name, parts) => {
    await writeFile(join(folder, "outside"), "untouched");
    await writeFile(join(folder, "to", "before"), "untouched");
    await expect(unpackFolder(join(folder, "to"), archive(...parts))).rejects.toMatchObject({ code: "unsafe" });
    expect((await readdir(folder)).sort()).toEqual(["from", "outside", "to"]);
    expect(await readFile(join(folder, "outside"), "utf8")).toBe("untouched");
    expect(await readFile(join(folder, "to", "before"), "utf8")).toBe("untouched");
  });

  test("rejects devices and FIFOs", async () => {
    for (const flag of ["3", "4", "6"]) {
      const block = archive({ name: "dev" });
      block.write(flag, 156, "latin1");
      let sum = 8 * 32;
      for (let i = 0; i < 512; i += 1) if (i < 148 || i >= 156) sum += block[i] as number;
      block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
      await expect(unpackFolder(join(folder, "to"), block)).rejects.toMatchObject({ code: "unsafe" });
    }
  });

  test("does not follow an existing link, for files or folders", async () => {
    await symlink(join(folder, "from"), join(folder, "to", "door"));
    await expect(unpackFolder(join(folder, "to"), archive({ name: "door/evil", content: "x" }))).rejects.toMatchObject({ code: "unsafe" });
    await symlink(join(folder, "from", "target"), join(folder, "to", "name"));
    await unpackFolder(join(folder, "to"), archive({ name: "name", content: "replaced" }));
    expect(await readdir(join(folder, "from"))).toEqual([]);
    expect((await lstat(join(folder, "to", "name"))).isFile()).toBe(true);
  });

  test.each([
    ["/etc/passwd", false],
    ["../x", false],
    ["sub/../../x", false],
    ["a/..", false],
    ["", false],
    ["sub", true],
    ["./sub/file", true],
  ])("creates a link to %j at the top level: %s", async (target, isCreated) => {
    const result = await unpackFolder(join(folder, "to"), archive({ name: "l", kind: "link", linkTarget: target }));
    expect(result.skipped.length).toBe(isCreated ? 0 : 1);
    expect(await readdir(join(folder, "to"))).toEqual(isCreated ? ["l"] : []);
  });

  test("allows a link one folder down to go up only one folder", async () => {
    const result = await unpackFolder(
      join(folder, "to"),
      archive({ name: "d/ok", kind: "link", linkTarget: "../x" }, { name: "d/out", kind: "link", linkTarget: "../../x" }),
    );
    expect(result.skipped).toMatchObject([{ name: "d/out" }]);
  });

  test("drops set-id bits", async () => {
    await unpackFolder(join(folder, "to"), archive({ name: "tool", mode: 0o6755, content: "x" }));
    expect((await lstat(join(folder, "to", "tool"))).mode & 0o7777).toBe(0o755);
  });

  test("rejects too many bytes or entries as too_large", async () => {
    const two = archive({ name: "a", content: "12345" }, { name: "b", content: "12345" });
    await expect(unpackFolder(join(folder, "to"), two, { bytesMax: 9 })).rejects.toMatchObject({ code: "too_large" });
    await expect(unpackFolder(join(folder, "to"), two, { entriesMax: 1 })).rejects.toMatchObject({ code: "too_large" });
  });

  test("rejects truncated and malformed archives", async () => {
    const whole = archive({ name: "a", content: "x".repeat(5_000) });
    await expect(unpackFolder(join(folder, "to"), whole.subarray(0, 2_000))).rejects.toMatchObject({ code: "invalid" });
    await expect(unpackFolder(join(folder, "to"), Buffer.alloc(1024, "z"))).rejects.toMatchObject({ code: "invalid" });
  });
});

test("packing skips a FIFO and does not follow links", async () => {
  execFileSync("mkfifo", [join(folder, "from", "fifo")]);
  await symlink("/etc/passwd", join(folder, "from", "link"));
  const skipped: string[] = [];
  const packed = await collect(packFolder(join(folder, "from"), { onSkipped: (name) => skipped.push(name) }));
  expect(skipped).toEqual(["fifo"]);
  expect(packed.includes("root:")).toBe(false);
});

test("packing a missing path throws not_found", async () => {
  await expect(collect(packFolder(join(folder, "nothing")))).rejects.toMatchObject({ code: "not_found" });
});

test("any bytes are either an archive or one of our errors, however they are split", async () => {
  const seed = archive({ name: "a", content: "x".repeat(700) }, { name: "l".repeat(150), kind: "link", linkTarget: "t" });
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.nat(seed.length - 1), fc.nat(255)), { maxLength: 6 }),
      fc.integer({ min: 1, max: 700 }),
      async (changes, cut) => {
        const bytes = Buffer.from(seed);
        for (const [at, value] of changes) bytes[at] = value;
        const pieces = (async function* () {
          for (let at = 0; at < bytes.length; at += cut) yield bytes.subarray(at, at + cut);
        })();
        try {
          for await (const entry of readTar(pieces)) expect(entry.name.length).toBeLessThan(5_000);
        } catch (error) {
          expect(["invalid", "unsafe"]).toContain((error as { code?: string }).code);
        }
      },
    ),
    { numRuns: tries(300) },
  );
});
