import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { FolderTree } from "./folder-tree.ts";
import { readLower } from "./read-side.ts";

let base = "";
let tree: FolderTree;
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "caisson-test-"));
  mkdirSync(join(base, "folder/d"), { recursive: true });
  mkdirSync(join(base, "outside"));
  writeFileSync(join(base, "outside/secret"), "s");
  symlinkSync("../outside", join(base, "folder/out"));
  symlinkSync(base, join(base, "folder/abs"));
  writeFileSync(join(base, "folder/d/f"), "f");
  tree = new FolderTree(join(base, "folder"));
});
afterEach(() => {
  tree[Symbol.dispose]();
  rmSync(base, { recursive: true, force: true });
});

describe("a folder tree", () => {
  test("reads nothing outside", async () => {
    for (const path of ["out/secret", "abs/outside/secret", "d/f/x", "no/such"]) {
      expect(tree.stat(path), path).toBeNull();
      expect(tree.readLink(path)).toBeNull();
      expect(await tree.openFile(path)).toBeNull();
      expect(await readLower(tree, path)).toBeNull();
    }
    expect(tree.entries("out")).toEqual([]);
    expect(tree.exactEntries("abs")).toEqual([]);
    expect(await readLower(tree, "out")).toEqual({ kind: "link", mode: 0o777, content: Buffer.from("../outside") });
    expect((await readLower(tree, "d/f"))?.content.toString()).toBe("f");
  });

  test("changes nothing outside, and names a link in the path", async () => {
    const unsafe = expect.objectContaining({ code: "unsafe", message: expect.stringMatching(/(out|abs) is a link$/) });
    for (const path of ["out/secret", "abs/outside/secret"]) {
      const effects = [
        () => tree.mkdir(path),
        () => tree.unlink(path),
        () => tree.rmdir(path),
        () => tree.symlink(Buffer.from("x"), path),
        () => tree.chown(path, { uid: 0, gid: 0 }),
        () => tree.chmodFolder(path, 0o777),
        () => tree.syncFolder(path),
        () => tree.rename("d/f", path),
        () => tree.rename(path, "d/g"),
        () => tree.link("d/f", path),
        () => tree.link(path, "d/g"),
      ];
      for (const effect of effects) expect(effect).toThrow(unsafe);
      await expect(tree.createFile(path)).rejects.toEqual(unsafe);
    }
    await expect(tree.createFile("out")).rejects.toMatchObject({ code: "EEXIST" });
    expect(() => tree.chmodFolder("out", 0o777)).toThrow(expect.objectContaining({ code: expect.stringMatching(/ENOTDIR|ELOOP/) }));
    expect(readFileSync(join(base, "outside/secret"), "utf8")).toBe("s");
    expect(readdirSync(join(base, "outside"))).toEqual(["secret"]);
    expect(readdirSync(join(base, "folder/d"))).toEqual(["f"]);
  });

  test.each(["", ".", "..", "../outside", "d/../../outside", "/etc", "d//f", "d/.", "d\0f"])("rejects the path %j", (path) => {
    if (path === "") expect(() => tree.stat(path)).toThrow(expect.objectContaining({ code: "unsafe" }));
    else
      for (const effect of [() => tree.stat(path), () => tree.mkdir(path)])
        expect(effect).toThrow(expect.objectContaining({ code: "unsafe" }));
  });

  test("opens no FIFO and no device", async () => {
    execFileSync("mkfifo", [join(base, "folder/fifo")]);
    expect(await tree.openFile("fifo")).toBeNull();
    expect(await readLower(tree, "fifo")).toBeNull();
    expect(await tree.openFile("d")).toBeNull();
  });

  test("handles names that are not UTF-8", () => {
    const name = Buffer.from([0x61, 0xff, 0xc3, 0xbc]);
    symlinkSync("here", Buffer.concat([Buffer.from(`${base}/folder/d/`), name]));
    mkdirSync(Buffer.concat([Buffer.from(`${base}/folder/`), name]));
    const entry = tree.exactEntries("d").find(({ kind }) => kind === "link");
    expect(tree.readLink(`d/${entry?.name}`)?.toString()).toBe("here");
    const folder = tree.exactEntries("").find(({ kind, name: each }) => kind === "folder" && each !== "d");
    tree.symlink(Buffer.from("x"), `${folder?.name}/${entry?.name}`);
    const linkPath = Buffer.concat([Buffer.from(`${base}/folder/`), name, Buffer.from("/"), name]);
    expect(readlinkSync(linkPath)).toBe("x");
  });

  test("follows the opened folder if it moves, and leaks no descriptors", () => {
    const open = () => readdirSync("/proc/self/fd").length;
    const before = open();
    const other = new FolderTree(join(base, "folder"));
    for (let index = 0; index < 200; index++) other.mkdir(`d/${index}`);
    for (let index = 0; index < 200; index++) expect(other.entries(`d/${index}`)).toEqual([]);
    execFileSync("mv", [join(base, "folder"), join(base, "moved")]);
    mkdirSync(join(base, "folder"));
    other.mkdir("made");
    expect(readdirSync(join(base, "folder"))).toEqual([]);
    expect(readdirSync(join(base, "moved"))).toContain("made");
    expect(open()).toBeLessThan(before + 70);
    other[Symbol.dispose]();
    expect(open()).toBe(before);
  });
});
