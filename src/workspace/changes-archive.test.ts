import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { ChangesManifest } from "../contract/session/changes-manifest.ts";
import { type FixtureEntry, tarOf } from "../sandbox/tar/testing-tar.ts";
import { applyChanges } from "./apply.ts";
import type { Change, FileSide } from "./change.ts";
import { digestOf, packChanges, readChangesArchive, sideFrom } from "./changes-archive.ts";

const side = (text: string, more: Partial<FileSide> = {}): FileSide => ({ kind: "file", mode: 0o644, content: Buffer.from(text), ...more });
const change = (path: string, more: Partial<Change>): Change => ({
  path,
  from: null,
  before: null,
  after: null,
  changedOutside: false,
  ...more,
});
const described = { id: "run_aaaaaaaaaaaa", kind: "session" as const, source: { kind: "empty" as const }, commit: null };
const nothingElse = { leftOut: [], ignored: 0 };

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

const read = (entries: readonly FixtureEntry[]) => readChangesArchive(once(tarOf(entries)));

type File = ChangesManifest["files"][number];
const described1 = (text: string) => ({
  kind: "file" as const,
  mode: 0o644 as const,
  bytes: text.length,
  digest: digestOf(Buffer.from(text)),
});
const added = (path: string, text = "x"): File => ({ path, before: null, after: described1(text), applied: null });
const manifest = (files: readonly File[]): FixtureEntry => ({
  name: "manifest.json",
  content: JSON.stringify({ version: 1, ...described, files, ...nothingElse }),
});
const content = (text = "x", name = `content/${digestOf(Buffer.from(text))}`): FixtureEntry => ({ name, content: text });

describe("archived changes", () => {
  test("survive a round trip, with moves split and each content stored once", async () => {
    const changes = [
      change("new.txt", { after: side("same") }),
      change("copy.txt", { after: side("same") }),
      change("moved.sh", { from: "old.sh", before: side("#!", { mode: 0o755 }), after: side("#!\n", { mode: 0o755 }) }),
      change("link", { before: side("a", { kind: "link", mode: 0o777 }), after: side("b", { kind: "link", mode: 0o777 }) }),
    ];
    const options = { base: false, applied: new Map([["new.txt", "abc"]]) };
    const archive = await readChangesArchive(packChanges(described, { changes, ...nothingElse }, options));
    expect(archive.manifest.files.map(({ path, applied }) => [path, applied])).toEqual([
      ["new.txt", "abc"],
      ["copy.txt", null],
      ["old.sh", null],
      ["moved.sh", null],
      ["link", null],
    ]);
    const contents = await archive.contents();
    expect(contents.size).toBe(3);
    expect(sideFrom(archive.manifest.files[4]?.after ?? null, contents)).toEqual(side("b", { kind: "link", mode: 0o777 }));
    const whole = await readChangesArchive(packChanges(described, { changes, ...nothingElse }, { ...options, base: true }));
    expect((await whole.contents()).size).toBe(5);
  });

  test.each(["../out", "/etc/passwd", "a/../../out", "a//b", "./a", "a/", "a\0b"])(
    "are rejected if they name the path %j",
    async (path) => {
      await expect(read([manifest([added(path)]), content()])).rejects.toMatchObject({ code: "unsafe" });
    },
  );

  test.each<[string, FixtureEntry[]]>([
    ["without a manifest", [content()]],
    ["with a manifest that is a link", [{ name: "manifest.json", type: "2", link: "/etc/passwd" }]],
    ["with an invalid manifest", [{ name: "manifest.json", content: "[]" }]],
    ["with a file that appears twice", [manifest([added("a"), added("a")]), content()]],
    ["with a link's mode on a file", [manifest([{ ...added("a"), after: { ...described1("x"), mode: 0o777 } }]), content()]],
    ["with a file on neither side", [manifest([{ ...added("a"), after: null }])]],
  ])("are rejected %s", async (_, entries) => {
    await expect(read(entries)).rejects.toMatchObject({ code: "protocol" });
  });

  test.each<[string, FixtureEntry[], string]>([
    ["content that does not match its digest", [content("y", `content/${digestOf(Buffer.from("x"))}`)], "protocol"],
    ["content that the manifest does not name", [content(), content("z")], "protocol"],
    ["duplicate content", [content(), content()], "protocol"],
    ["content of the wrong size", [content("xx", `content/${digestOf(Buffer.from("x"))}`)], "protocol"],
    ["a file beside the contents", [content(), { name: ".git/hooks/pre-commit", content: "x" }], "protocol"],
    ["a device", [{ name: "content/null", type: "3" }], "unsafe"],
    ["no content", [], "protocol"],
  ])("are rejected with %s", async (_, entries, code) => {
    const archive = await read([manifest([added("a")]), ...entries]);
    await expect(archive.contents()).rejects.toMatchObject({ code });
  });

  test("are rejected before reading if larger than a diff may be", async () => {
    const huge = { ...described1("x"), bytes: 64 * 1024 * 1024 + 1 };
    await expect(read([manifest([{ ...added("a"), after: huge }])])).rejects.toMatchObject({ code: "protocol" });
    const long: FixtureEntry = { name: "manifest.json", size: 65 * 1024 * 1024 };
    await expect(readChangesArchive(once(tarOf([long], { end: false })))).rejects.toMatchObject({ code: "too_large" });
  });

  test("from a hostile station change nothing outside the folder and run nothing", async () => {
    const base = await mkdtemp(join(tmpdir(), "caisson-hostile-"));
    try {
      const folder = join(base, "folder");
      const stateDir = join(base, "state");
      await Promise.all([mkdir(join(folder, ".git", "hooks"), { recursive: true }), mkdir(stateDir), mkdir(join(base, "outside"))]);
      await symlink(join(base, "outside"), join(folder, "way"));
      await writeFile(join(folder, "mine.txt"), "mine\n");
      const readChanges = async (files: readonly File[], texts: readonly string[]) => {
        const archive = await read([manifest(files), ...texts.map((text) => content(text))]);
        const contents = await archive.contents();
        return archive.manifest.files.map(({ path, after }) => change(path, { after: sideFrom(after, contents) }));
      };
      const apply = async (files: readonly File[], texts: readonly string[] = ["x"]) =>
        applyChanges(await readChanges(files, texts), { folder, stateDir });
      // Through an existing link, and through one in the archive.
      await expect(apply([added("way/x")])).rejects.toMatchObject({ code: "unsafe" });
      const out = { kind: "link" as const, mode: 0o777 as const, bytes: 10, digest: digestOf(Buffer.from("../outside")) };
      await expect(apply([{ ...added("new"), after: out }, added("new/x")], ["../outside", "x"])).rejects.toMatchObject({
        code: expect.stringMatching(/unsafe|conflict/),
      });
      await expect(apply([{ ...added("new"), after: out }], ["../outside"])).rejects.toMatchObject({ code: "unsafe" });
      const held = await apply([added(".git/hooks/pre-commit"), added(".vscode/tasks.json"), added("fine.txt")]);
      expect([held.applied, held.skipped.map(({ path }) => path).sort()]).toEqual([
        ["fine.txt"],
        [".git/hooks/pre-commit", ".vscode/tasks.json"],
      ]);
      // Claims to be new, but the user has this file.
      await expect(apply([added("mine.txt")])).rejects.toMatchObject({ code: "conflict" });
      expect(await readdir(join(base, "outside"))).toEqual([]);
      expect(await readdir(join(folder, ".git", "hooks"))).toEqual([]);
      expect(await readFile(join(folder, "mine.txt"), "utf8")).toBe("mine\n");
    } finally {
      await rm(base, { recursive: true, force: true });
    }
  });
});
