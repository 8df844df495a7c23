import { execFileSync } from "node:child_process";
import { chmod, lstat, mkdir, mkdtemp, readdir, readFile, readlink, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { encodeHeader, padding, type TarHeader } from "./tar-format.ts";
import { packFolder } from "./tar-pack.ts";
import { unpackInto } from "./tar-unpack.ts";

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "caisson-test-"));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

/** In pieces of odd sizes, as a socket would give it. */
async function* pieces(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let offset = 0; offset < bytes.length; offset += 700) yield bytes.subarray(offset, offset + 700);
}
const entry = (header: Partial<TarHeader> & { kind: "file" | "directory" | "link" }, body = ""): Uint8Array => {
  const bytes = Buffer.from(body);
  const whole = { name: "x", linkTarget: "", mode: 0o644, modifiedSeconds: 1, ...header, sizeBytes: bytes.length };
  return Buffer.concat([encodeHeader(whole), bytes, padding(bytes.length)]);
};
const archive = (...entries: Uint8Array[]) => pieces(Buffer.concat([...entries, new Uint8Array(1024)]));
const gather = async (stream: AsyncIterable<Uint8Array>) => {
  const parts: Uint8Array[] = [];
  for await (const part of stream) parts.push(part);
  return Buffer.concat(parts);
};

describe("packing and unpacking", () => {
  test("a folder survives, long names, links and modes included", async () => {
    const source = join(dir, "source");
    const long = "n".repeat(200);
    await mkdir(join(source, "sub", long), { recursive: true });
    await writeFile(join(source, "sub", long, "ünïcode.txt"), "content");
    await writeFile(join(source, "run.sh"), "#!/bin/sh\n");
    await chmod(join(source, "run.sh"), 0o755);
    await writeFile(join(source, "big"), Buffer.alloc(700_001, 7));
    await symlink("run.sh", join(source, "link"));
    await mkdir(join(dir, "out"));
    const { leftOut } = await unpackInto(join(dir, "out"), pieces(await gather(packFolder(source))));
    expect(leftOut).toEqual([]);
    expect(await readFile(join(dir, "out", "sub", long, "ünïcode.txt"), "utf8")).toBe("content");
    expect((await lstat(join(dir, "out", "run.sh"))).mode & 0o777).toBe(0o755);
    expect((await readFile(join(dir, "out", "big"))).equals(Buffer.alloc(700_001, 7))).toBe(true);
    expect(await readlink(join(dir, "out", "link"))).toBe("run.sh");
  });

  test("what we pack, tar(1) reads; what tar(1) packs, we read", async () => {
    const source = join(dir, "source");
    // Together longer than ustar's name field, so that it has to use its prefix.
    const folder = "d".repeat(60);
    const file = "x".repeat(90);
    await mkdir(join(source, folder), { recursive: true });
    await writeFile(join(source, folder, file), "one");
    await writeFile(join(dir, "ours.tar"), await gather(packFolder(source)));
    await mkdir(join(dir, "theirs"));
    execFileSync("tar", ["xf", join(dir, "ours.tar"), "-C", join(dir, "theirs")]);
    expect(await readFile(join(dir, "theirs", folder, file), "utf8")).toBe("one");
    for (const format of ["pax", "gnu", "ustar"]) {
      const out = join(dir, format);
      await mkdir(out);
      const made = execFileSync("tar", ["c", `--format=${format}`, "-C", source, "."], { maxBuffer: 1e7 });
      await unpackInto(out, pieces(made));
      expect(await readFile(join(out, folder, file), "utf8"), format).toBe("one");
    }
  });
});

describe("an archive that came out of a sandbox", () => {
  let out: string;
  beforeEach(async () => {
    out = join(dir, "out");
    await mkdir(out);
    await writeFile(join(dir, "outside"), "untouched");
  });
  afterEach(async () => {
    expect(await readFile(join(dir, "outside"), "utf8")).toBe("untouched");
    expect((await readdir(dir)).sort()).toEqual(["out", "outside"]);
  });

  test.each(["../outside", "/etc/x", "a/../../outside", "a/b/.."])("the name %s is refused", async (name) => {
    await expect(unpackInto(out, archive(entry({ kind: "file", name }, "bad")))).rejects.toMatchObject({ code: "unsafe" });
  });
  test("nothing is written through a link", async () => {
    const trick = archive(entry({ kind: "link", name: "l", linkTarget: ".." }), entry({ kind: "file", name: "l/outside" }, "bad"));
    const { leftOut } = await unpackInto(out, trick);
    expect(leftOut).toEqual(["l"]);
    expect(await readFile(join(out, "l", "outside"), "utf8")).toBe("bad");
  });
  test("a link inside may not be followed by a file of the same name", async () => {
    const trick = archive(entry({ kind: "file", name: "l" }, "1"), entry({ kind: "link", name: "l", linkTarget: "m" }));
    await expect(unpackInto(out, trick)).rejects.toThrow();
  });
  test("links that lead out are left out and named", async () => {
    const links = ["/etc/shadow", "../outside", "a/../../outside"].map((linkTarget, index) =>
      entry({ kind: "link", name: `l${index}`, linkTarget }),
    );
    expect((await unpackInto(out, archive(...links))).leftOut).toEqual(["l0", "l1", "l2"]);
    expect(await readdir(out)).toEqual([]);
  });
  test("devices, damage and half an archive are refused", async () => {
    const device = Buffer.from(entry({ kind: "file", name: "d" }));
    device.write("3", 156);
    await expect(unpackInto(out, archive(device))).rejects.toMatchObject({ code: "unsafe" });
    await expect(unpackInto(out, pieces(Buffer.alloc(512, 1)))).rejects.toMatchObject({ code: "unsafe" });
    await expect(unpackInto(out, pieces(entry({ kind: "file", name: "f" }, "0123456789").subarray(0, 515)))).rejects.toMatchObject({
      code: "unsafe",
    });
  });
  test("setuid is not kept", async () => {
    await unpackInto(out, archive(entry({ kind: "file", name: "f", mode: 0o4755 }, "x")));
    expect((await lstat(join(out, "f"))).mode & 0o7000).toBe(0);
  });
});
