import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { tries } from "../../../test/support/thorough.ts";
import { readRawTar } from "./tar-reader.ts";
import { type FixtureEntry, tarOf } from "./testing-tar.ts";

async function* chunked(data: Uint8Array, size = 700): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < data.length; at += size) yield data.subarray(at, at + size);
}

async function all(data: Uint8Array, size?: number) {
  const found: { name: string; kind: string; linkName: string; size: number; text: string }[] = [];
  for await (const { name, kind, linkName, size: length, content } of readRawTar(chunked(data, size))) {
    const parts: Uint8Array[] = [];
    for await (const part of content) parts.push(part);
    found.push({ name, kind, linkName, size: length, text: Buffer.concat(parts).toString("latin1") });
  }
  return found;
}

const invalid = expect.objectContaining({ code: "invalid" });

describe("readRawTar", () => {
  it("reads every kind of entry, in chunks of any size", async () => {
    const archive = tarOf([
      { name: "d/", type: "5" },
      { name: "d/f", content: "x".repeat(1500) },
      { name: "l", type: "2", link: "d/f" },
      { name: "h", type: "1", link: "d/f" },
      { name: "c", type: "3" },
      { name: "p", type: "6" },
    ]);
    for (const size of [1, 511, 512, 100_000]) {
      expect((await all(archive, size)).map(({ name, kind }) => `${name} ${kind}`)).toEqual([
        "d/ folder",
        "d/f file",
        "l link",
        "h hardLink",
        "c device",
        "p fifo",
      ]);
    }
    expect((await all(archive))[1]?.text).toBe("x".repeat(1500));
  });

  it("reads long names and sizes from pax and GNU headers", async () => {
    const long = `a/${"n".repeat(300)}`;
    expect((await all(tarOf([{ name: "short", content: "abc", pax: { path: long, mtime: "12.5" } }])))[0]).toMatchObject({
      name: long,
      text: "abc",
    });
    const gnu = tarOf([
      { name: "././@LongLink", type: "L", content: `${long}\0` },
      { name: "short", content: "abc" },
    ]);
    expect((await all(gnu))[0]).toMatchObject({ name: long, text: "abc" });
  });

  it("skips content that the caller does not read", async () => {
    const names: string[] = [];
    for await (const { name } of readRawTar(chunked(tarOf([{ name: "a", content: "x".repeat(5000) }, { name: "b" }])))) names.push(name);
    expect(names).toEqual(["a", "b"]);
  });

  it("closes its source, and reads past the end only with `drain`", async () => {
    const read = async (options: { drain?: boolean }) => {
      const seen = { chunks: 0, closed: false };
      async function* source() {
        try {
          yield tarOf([{ name: "a" }]);
          for (; seen.chunks < 5; seen.chunks += 1) yield Buffer.alloc(10_240);
        } finally {
          seen.closed = true;
        }
      }
      for await (const _ of readRawTar(source(), options));
      return seen;
    };
    expect(await read({})).toEqual({ chunks: 0, closed: true });
    expect(await read({ drain: true })).toEqual({ chunks: 5, closed: true });
  });

  it("rejects damaged archives", async () => {
    const good = tarOf([{ name: "a", content: "hello" }]);
    const wrongSum = Buffer.from(good);
    wrongSum[0] = 66;
    await expect(all(wrongSum)).rejects.toThrow(invalid);
    await expect(all(good.subarray(0, 520))).rejects.toThrow(invalid);
    await expect(all(Buffer.from("no archive at all".repeat(100)))).rejects.toThrow(invalid);
    await expect(all(tarOf([{ name: "a", type: "Z" }]))).rejects.toThrow(invalid);
    await expect(all(tarOf([{ name: "a", type: "x", content: "99 path=x\n" }, { name: "b" }]))).rejects.toThrow(invalid);
    await expect(all(tarOf([{ name: "a", pax: { size: "-1" } }]))).rejects.toThrow(invalid);
    await expect(all(tarOf([{ name: "a", pax: { mtime: "soon" } }]))).rejects.toThrow(invalid);
    await expect(all(tarOf([{ name: "a", pax: { path: "x\0y" } }]))).rejects.toThrow(invalid);
    await expect(all(tarOf([{ name: "a", pax: { path: "x".repeat(5000) } }]))).rejects.toThrow(expect.objectContaining({ code: "unsafe" }));
    await expect(all(tarOf([{ name: "a", type: "x", size: 2 ** 30 }]))).rejects.toThrow(invalid);
    await expect(all(tarOf([{ name: "a", type: "S" }]))).rejects.toThrow(expect.objectContaining({ code: "unsupported" }));
  });

  it("fails only with its own errors on mutated archives", async () => {
    const entries: FixtureEntry[] = [
      { name: "d/", type: "5" },
      { name: "d/f", content: "hello", pax: { path: "d/g", uid: "12" } },
      { name: "l", type: "2", link: "x" },
    ];
    const good = tarOf(entries);
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(fc.nat(good.length - 1), fc.nat(255)), { minLength: 1, maxLength: 8 }), async (changes) => {
        const bad = Buffer.from(good);
        for (const [at, value] of changes) bad[at] = value;
        await all(bad).catch((error: unknown) => expect(error).toMatchObject({ name: "CaissonError" }));
      }),
      { numRuns: tries(300) },
    );
  });
});
