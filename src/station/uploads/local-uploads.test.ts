import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { packFolder } from "../../sandbox/tar/pack-folder.ts";
import { tarEnd } from "../../sandbox/tar/tar-header.ts";
import { type FixtureEntry, tarOf } from "../../sandbox/tar/testing-tar.ts";
import { createLocalUploads, type LocalUploadsOptions } from "./local-uploads.ts";

let base: string;
beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), "caisson-uploads-"));
});
afterEach(() => rm(base, { recursive: true, force: true }));

const self = { pid: process.pid, startTicks: 7, bootId: "boot" };
const uploads = (options: Partial<LocalUploadsOptions> = {}) =>
  createLocalUploads({
    stateDir: join(base, "state"),
    used: async () => new Set(),
    self: () => self,
    alive: ({ pid }) => pid === process.pid,
    ...options,
  });

async function* pieces(...parts: Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* parts;
}

const entry = (fixture: FixtureEntry) => tarOf([fixture], { end: false });
const file = (name: string, content: string) => entry({ name, content });

async function folder(): Promise<string> {
  const path = join(base, "folder");
  await mkdir(join(path, "deep"), { recursive: true });
  await writeFile(join(path, "deep", "file"), "content\n", { mode: 0o4755 });
  await symlink("deep/file", join(path, "link"));
  return path;
}

const listStored = async () => (await readdir(join(base, "state", "uploads")).catch(() => [])).sort();

describe("an upload", () => {
  test("preserves the folder without setuid bits, and is stored only once", async () => {
    const path = await folder();
    const verbs = uploads();
    const first = await verbs.put(packFolder(path));
    const again = await verbs.put(packFolder(path), { digest: first.digest });
    expect(again.id).toBe(first.id);
    expect(await listStored()).toEqual([first.id]);
    const tree = await verbs.treeOf(first.id, { owner: "local" });
    expect(await readFile(join(tree, "link"), "utf8")).toBe("content\n");
    expect((await stat(join(tree, "deep/file"))).mode & 0o7777).toBe(0o755);
  });

  test("belongs to its owner; others can neither use nor detect it", async () => {
    const path = await folder();
    const verbs = uploads();
    const mine = await verbs.put(packFolder(path), { owner: "ann" });
    await expect(verbs.treeOf(mine.id, { owner: "bob" })).rejects.toMatchObject({ code: "not_found" });
    const theirs = await verbs.put(packFolder(path), { owner: "bob" });
    expect(theirs.id).not.toBe(mine.id);
  });

  test.each<[string, Uint8Array[], string]>([
    ["a name that leads out", [file("../out", "x"), tarEnd], "unsafe"],
    ["an absolute name", [file("/tmp/out", "x"), tarEnd], "unsafe"],
    ["a file behind a link", [entry({ name: "a", type: "2", link: "." }), file("a/b", "x"), tarEnd], "unsafe"],
    ["a hard link to something else", [entry({ name: "a", type: "1", link: "b" }), tarEnd], "unsafe"],
    ["no archive at all", [Buffer.alloc(512, "x")], "invalid"],
    ["nothing", [], "invalid"],
    ["an archive that is cut off", [file("a", "x").subarray(0, 700)], "invalid"],
  ])("with %s is rejected completely", async (_, parts, code) => {
    await expect(uploads().put(pieces(...parts))).rejects.toMatchObject({ code });
    expect(await listStored()).toEqual([]);
    expect(await readdir(base)).toEqual(["state"]);
  });

  test("leaves out a link that leads outside, and reports it", async () => {
    const view = await uploads().put(pieces(entry({ name: "out", type: "2", link: "/etc/passwd" }), file("in", "x"), tarEnd));
    expect(view.skipped).toEqual([{ name: "out", reason: "it is a link to /etc/passwd" }]);
    expect(await readdir(join(base, "state", "uploads", view.id, "tree"))).toEqual(["in"]);
  });

  test("with a device is rejected", async () => {
    await expect(uploads().put(pieces(entry({ name: "null", type: "3" }), tarEnd))).rejects.toMatchObject({ code: "unsafe" });
    expect(await listStored()).toEqual([]);
  });

  test("leaves nothing if its digest is wrong, or it breaks off or is cancelled", async () => {
    const path = await folder();
    await expect(uploads().put(packFolder(path), { digest: "0".repeat(64) })).rejects.toMatchObject({ code: "invalid" });
    const broken = async function* () {
      yield file("a", "x");
      throw new Error("the connection was reset");
    };
    await expect(uploads().put(broken())).rejects.toThrow("reset");
    await expect(uploads().put(packFolder(path), { signal: AbortSignal.abort() })).rejects.toMatchObject({ code: "cancelled" });
    expect(await listStored()).toEqual([]);
  });

  test("is limited in size and entries, and in number while unused", async () => {
    const small = { bytesMax: 100, entriesMax: 2, unusedMax: 1 };
    const verbs = uploads({ limits: small });
    await expect(verbs.put(pieces(file("a", "x".repeat(101)), tarEnd))).rejects.toMatchObject({ code: "too_large" });
    await expect(verbs.put(pieces(file("a", ""), file("b", ""), file("c", ""), tarEnd))).rejects.toMatchObject({ code: "too_large" });
    await expect(verbs.put(pieces(tarEnd, Buffer.alloc(20_000)))).rejects.toMatchObject({ code: "too_large" });
    expect(await listStored()).toEqual([]);
    const { id } = await verbs.put(pieces(file("a", "x"), tarEnd));
    await expect(verbs.put(pieces(file("b", "y"), tarEnd))).rejects.toMatchObject({ code: "busy" });
    const using = uploads({ limits: small, used: async () => new Set([id]) });
    await using.put(pieces(file("b", "y"), tarEnd));
    await expect(using.remove(id)).rejects.toMatchObject({ code: "conflict" });
  });

  test("expires if unused, and remains of dead processes are removed", async () => {
    let now = Date.now();
    const used = new Set<string>();
    const verbs = uploads({ now: () => now, used: async () => used });
    const one = await verbs.put(pieces(file("a", "x"), tarEnd));
    const two = await verbs.put(pieces(file("b", "y"), tarEnd));
    used.add(two.id);
    await mkdir(join(base, "state", "uploads", ".part-999999-1-boot-up_aaaaaaaaaaaa"));
    await mkdir(join(base, "state", "uploads", `.part-${process.pid}-7-boot-up_bbbbbbbbbbbb`));
    await mkdir(join(base, "state", "uploads", ".gone-up_cccccccccccc"));
    await verbs.sweep();
    expect(await listStored()).toEqual([`.part-${process.pid}-7-boot-up_bbbbbbbbbbbb`, ...[one.id, two.id].sort()]);
    now += 3_600_001;
    await verbs.sweep();
    expect(await listStored()).toEqual([`.part-${process.pid}-7-boot-up_bbbbbbbbbbbb`, two.id]);
    await expect(verbs.get(one.id)).rejects.toMatchObject({ code: "not_found" });
    expect((await verbs.get(two.id)).expiresAt).toBeNull();
  });
});
