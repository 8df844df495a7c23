import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type FixtureEntry, tarOf } from "../../../sandbox/tar/testing-tar.ts";
import { createLayerUnpacker } from "./layer-unpacker.ts";

let folder = "";
let target = "";
let outside = "";

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "caisson-test-"));
  target = join(folder, "target");
  outside = join(folder, "outside");
  mkdirSync(target);
  mkdirSync(outside);
  writeFileSync(join(outside, "victim"), "untouched", { mode: 0o600 });
  chmodSync(outside, 0o700);
});
afterEach(() => {
  try {
    // No archive may change the files next to the target.
    expect(readFileSync(join(outside, "victim"), "utf8")).toBe("untouched");
    expect(lstatSync(join(outside, "victim")).mode & 0o777).toBe(0o600);
    expect(lstatSync(outside).mode & 0o777).toBe(0o700);
    expect(readdirSync(outside)).toEqual(["victim"]);
    expect(readdirSync(folder).sort()).toEqual(["outside", "target"]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

async function unpack(layers: FixtureEntry[][], limits: { bytesMax?: number; entriesMax?: number } = {}) {
  const unpacker = createLayerUnpacker({ target, keepOwners: false, bytesMax: 1e6, entriesMax: 1000, ...limits });
  for (const layer of layers) {
    await unpacker.add(
      (async function* () {
        yield tarOf(layer);
      })(),
    );
  }
  return unpacker.counts;
}

const inTarget = (path: string) => join(target, path);
const text = (path: string) => readFileSync(inTarget(path), "utf8");
const refusal = (code: string) => expect.objectContaining({ code });

describe("a sound image", () => {
  it("is unpacked with modes, links and hard links, but without setuid bits", async () => {
    await unpack([
      [
        { name: "./", type: "5", mode: 0o755 },
        { name: "bin", type: "2", link: "usr/bin" },
        { name: "usr/bin/su", content: "su", mode: 0o6755 },
        { name: "usr/bin/again", type: "1", link: "usr/bin/su" },
        { name: "tmp/", type: "5", mode: 0o1777 },
        { name: "closed/", type: "5", mode: 0o555 },
        { name: "closed/file", content: "in" },
        { name: "/absolute", content: "inside" },
      ],
    ]);
    expect(lstatSync(inTarget("usr/bin/su")).mode & 0o7777).toBe(0o755);
    expect(lstatSync(inTarget("usr/bin/su")).ino).toBe(lstatSync(inTarget("usr/bin/again")).ino);
    expect(lstatSync(inTarget("tmp")).mode & 0o7777).toBe(0o1777);
    expect(lstatSync(inTarget("closed")).mode & 0o7777).toBe(0o555);
    expect(readlinkSync(inTarget("bin"))).toBe("usr/bin");
    expect(text("absolute")).toBe("inside");
    expect(lstatSync(inTarget("usr/bin/su")).mtimeMs).toBe(1_700_000_000_000);
  });

  it("leaves out devices and FIFOs, and counts them", async () => {
    const counts = await unpack([
      [{ name: "dev/sda", type: "4" }, { name: "dev/null", type: "3" }, { name: "pipe", type: "6" }, { name: "f" }],
    ]);
    expect(counts.leftOut).toBe(3);
    expect(existsSync(inTarget("dev/sda"))).toBe(false);
    expect(existsSync(inTarget("pipe"))).toBe(false);
  });

  it("distinguishes names that are not UTF-8", async () => {
    await unpack([
      [
        { name: "\xff", content: "1" },
        { name: "\xfe", content: "2" },
      ],
    ]);
    expect(readdirSync(target, { encoding: "latin1" }).sort()).toEqual(["\xfe", "\xff"]);
  });

  it("puts a later layer over an earlier one", async () => {
    await unpack([
      [
        { name: "a", content: "old" },
        { name: "d/x", content: "x" },
        { name: "was-folder/y", content: "y" },
        { name: "was-file", content: "f" },
      ],
      [
        { name: "a", content: "new" },
        { name: "d/z", content: "z" },
        { name: "was-folder", content: "file" },
        { name: "was-file/", type: "5" },
      ],
    ]);
    expect([text("a"), text("d/x"), text("d/z"), text("was-folder")]).toEqual(["new", "x", "z", "file"]);
    expect(lstatSync(inTarget("was-file")).isDirectory()).toBe(true);
  });

  it("removes what whiteouts name, but only of earlier layers", async () => {
    await unpack([
      [
        { name: "d/gone", content: "1" },
        { name: "d/stays", content: "2" },
        { name: "o/old", content: "3" },
        { name: "o/sub/deep", content: "4" },
        { name: "f/x", content: "5" },
      ],
      [
        { name: "d/.wh.gone" },
        { name: "o/new", content: "6" },
        { name: "o/.wh..wh..opq" },
        { name: ".wh.f" },
        { name: "d/.wh..wh.plnk" },
        { name: "n/.wh.never" },
      ],
    ]);
    expect(readdirSync(inTarget("d"))).toEqual(["stays"]);
    expect(readdirSync(inTarget("o"))).toEqual(["new"]);
    expect(existsSync(inTarget("f"))).toBe(false);
  });

  it("uses the last of repeated entries", async () => {
    await unpack([
      [
        { name: "a", content: "first" },
        { name: "a", content: "second" },
        { name: "a", type: "2", link: "b" },
        { name: "a", content: "third" },
      ],
    ]);
    expect(text("a")).toBe("third");
    expect(existsSync(inTarget("b"))).toBe(false);
  });

  it("follows links inside, as a program there would", async () => {
    await unpack([
      [
        { name: "usr/lib/", type: "5" },
        { name: "lib", type: "2", link: "/usr/lib" },
        { name: "up", type: "2", link: "../../../usr" },
      ],
      [
        { name: "lib/a.so", content: "a" },
        { name: "up/lib/b.so", content: "b" },
      ],
    ]);
    expect(readdirSync(inTarget("usr/lib")).sort()).toEqual(["a.so", "b.so"]);
  });
});

describe("a hostile image", () => {
  it.each(["../escape", "a/../../escape", "a/..", "..", "/../escape"])("is refused for the name %s", async (name) => {
    await expect(unpack([[{ name, content: "x" }]])).rejects.toThrow(refusal("unsafe"));
  });

  it("cannot write through a link to a folder outside", async () => {
    await unpack([
      [
        { name: "l", type: "2", link: outside },
        { name: "l/victim", content: "owned" },
        { name: "l/new", content: "owned" },
      ],
    ]);
    expect(readFileSync(join(target, outside, "victim"), "utf8")).toBe("owned");
  });

  it("cannot write through a relative link that climbs out", async () => {
    await unpack([
      [
        { name: "d/l", type: "2", link: "../../outside" },
        { name: "d/l/victim", content: "owned" },
      ],
    ]);
    expect(text("outside/victim")).toBe("owned");
  });

  it("cannot overwrite the end of a link", async () => {
    await unpack([
      [
        { name: "l", type: "2", link: join(outside, "victim") },
        { name: "l", content: "mine" },
      ],
    ]);
    expect(text("l")).toBe("mine");
  });

  it.each([
    ["upwards", "../outside/victim"],
    ["to a folder", "d"],
    ["to nothing", "missing"],
    ["to the root", "/"],
  ])("is refused for a hard link %s", async (_what, link) => {
    await expect(
      unpack([
        [
          { name: "d/", type: "5" },
          { name: "h", type: "1", link },
        ],
      ]),
    ).rejects.toThrow(refusal("unsafe"));
  });

  it("is refused for a hard link through a link", async () => {
    const layers = [
      [
        { name: "l", type: "2", link: outside },
        { name: "h", type: "1", link: "l/victim" },
        { name: "h", content: "owned" },
      ],
    ];
    await expect(unpack(layers)).rejects.toThrow(refusal("unsafe"));
  });

  it("cannot write to the other name of a hard-linked link", async () => {
    await unpack([
      [
        { name: "l", type: "2", link: join(outside, "victim") },
        { name: "h", type: "1", link: "l" },
        { name: "h", content: "mine" },
      ],
    ]);
    expect(text("h")).toBe("mine");
  });

  it("cannot change the mode of an outside folder through a link in its place", async () => {
    await unpack([
      [
        { name: "d/outside/", type: "5", mode: 0o777 },
        { name: "d", type: "2", link: folder },
        { name: "e/", type: "5", mode: 0o777 },
        { name: "e", type: "2", link: outside },
      ],
    ]);
    expect(readlinkSync(inTarget("d"))).toBe(folder);
  });

  it("cannot remove files outside with whiteouts", async () => {
    await unpack([[{ name: "l", type: "2", link: outside }], [{ name: "l/.wh.victim" }, { name: "l/.wh..wh..opq" }, { name: ".wh.l" }]]);
    expect(existsSync(inTarget("l"))).toBe(false);
    for (const name of [".wh...", ".wh..", ".wh."]) await expect(unpack([[{ name }]])).rejects.toThrow(refusal("unsafe"));
  });

  it("is refused for circular links, or a file in place of a folder", async () => {
    await expect(
      unpack([
        [
          { name: "a", type: "2", link: "b" },
          { name: "b", type: "2", link: "a" },
          { name: "a/x", content: "x" },
        ],
      ]),
    ).rejects.toThrow(refusal("unsafe"));
    await expect(
      unpack([
        [
          { name: "f", content: "x" },
          { name: "f/x", content: "x" },
        ],
      ]),
    ).rejects.toThrow(refusal("unsafe"));
  });

  it("is refused beyond the limits", async () => {
    await expect(unpack([[{ name: "a", content: "x".repeat(2000) }]], { bytesMax: 1000 })).rejects.toThrow(refusal("too_large"));
    await expect(unpack([[{ name: "a", size: 8e9 }]])).rejects.toThrow(refusal("too_large"));
    const many = Array.from({ length: 11 }, (_, index) => ({ name: `f${index}` }));
    await expect(unpack([many], { entriesMax: 10 })).rejects.toThrow(refusal("too_large"));
  });

  it("cannot replace the root folder", async () => {
    await expect(unpack([[{ name: "/", type: "2", link: outside }]])).rejects.toThrow(refusal("unsafe"));
    await expect(unpack([[{ name: ".", content: "x" }]])).rejects.toThrow(refusal("unsafe"));
  });
});
