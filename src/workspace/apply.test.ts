import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { changesBetween, edited } from "../../test/support/random-trees.ts";
import { describeTree, readTree, writeTree } from "../../test/support/tree-on-disk.ts";
import { type ApplyOptions, applyChanges } from "./apply.ts";
import type { Change, FileSide } from "./change.ts";

const self = { pid: process.pid, startTicks: 1, bootId: "b" };
const file = (content: string, mode = 0o644): FileSide => ({ kind: "file", mode, content: Buffer.from(content) });
const link = (target: string): FileSide => ({ kind: "link", mode: 0o777, content: Buffer.from(target) });
const change = (path: string, before: FileSide | null, after: FileSide | null, more: Partial<Change> = {}): Change => ({
  path,
  from: null,
  before,
  after,
  changedOutside: false,
  ...more,
});

let base = "";
let folder = "";
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "caisson-test-"));
  folder = join(base, "folder");
  mkdirSync(folder);
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

const apply = (changes: readonly Change[], options: Partial<ApplyOptions> = {}) =>
  applyChanges(changes, { folder, alive: () => false, ...options });
const put = (path: string, content: string) => {
  mkdirSync(join(folder, path, ".."), { recursive: true });
  writeFileSync(join(folder, path), content);
};

/** Links that lead out are refused as a whole; the property is about what is applied. */
const staysInside = (side: FileSide) => side.kind === "file" || !/^\/|\.\./.test(side.content.toString());

describe("applying", () => {
  test("makes the new tree of the old one, whatever they are, or nothing of it", { timeout: 60_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(edited, fc.nat(40), async ({ before, after: wild }, failAt) => {
        const after = new Map([...wild].filter(([path, side]) => staysInside(side) && !path.includes("\n")));
        const old = new Map([...before].filter(([path]) => !path.includes("\n")));
        rmSync(folder, { recursive: true, force: true });
        mkdirSync(folder);
        writeTree(folder, old);
        const changes = changesBetween(old, after);
        let steps = 0;
        const crashpoint = (name: string) => {
          if (steps++ === failAt && name !== "apply:done:after") throw Object.assign(new Error("disk"), { code: "ENOSPC" });
        };
        const failed = await apply(changes, { crashpoint }).then(
          () => false,
          (error: unknown) => {
            expect(error).toMatchObject({ code: "no_space" });
            return true;
          },
        );
        expect(readTree(folder)).toEqual(describeTree(failed ? old : after));
        if (failed) await apply(changes);
        expect(readTree(folder)).toEqual(describeTree(after));
        expect(existsSync(join(folder, ".caisson-apply"))).toBe(false);
      }),
      { numRuns: 200 },
    );
  });

  test("keeps the user's permissions and adds only the right to execute", async () => {
    put("secret", "old\n");
    chmodSync(join(folder, "secret"), 0o600);
    put("tool", "old\n");
    chmodSync(join(folder, "tool"), 0o4750);
    await apply([
      change("secret", file("old\n"), file("new\n", 0o755)),
      change("tool", file("old\n", 0o755), file("new\n", 0o755)),
      change("fresh", null, file("x", 0o6755)),
    ]);
    expect(statSync(join(folder, "secret")).mode & 0o7777).toBe(0o700);
    expect(statSync(join(folder, "tool")).mode & 0o7777).toBe(0o750);
    expect(statSync(join(folder, "fresh")).mode & 0o7000).toBe(0);
  });

  test.runIf(process.getuid?.() === 0)("gives what root applies to whoever has the folder, and leaves others' files theirs", async () => {
    chownSync(folder, 1234, 1235);
    put("theirs", "1\n");
    chownSync(join(folder, "theirs"), 77, 78);
    await apply([
      change("theirs", file("1\n"), file("2\n")),
      change("new/deep/file", null, file("x")),
      change("new/link", null, link("deep/file")),
    ]);
    const owner = (path: string) => [lstatSync(join(folder, path)).uid, lstatSync(join(folder, path)).gid];
    expect(["theirs", "new", "new/deep", "new/deep/file", "new/link"].map(owner)).toEqual([
      [77, 78],
      [1234, 1235],
      [1234, 1235],
      [1234, 1235],
      [1234, 1235],
    ]);
  });

  test("leaves the user's other files and empty folders alone", async () => {
    put("d/gone", "1");
    put("d/mine", "2");
    mkdirSync(join(folder, "empty"));
    put("e/f/gone", "3");
    await apply([change("d/gone", file("1"), null), change("e/f/gone", file("3"), null)]);
    expect(readdirSync(folder).sort()).toEqual(["d", "empty"]);
    expect(readTree(folder)).toEqual({ "d/mine": "file 644 2" });
  });

  test("takes what is named, and of a move the end that is named", async () => {
    put("a/old", "moved\n");
    const changes = [change("b/new", file("moved\n"), file("moved\n"), { from: "a/old" }), change("c", null, file("c"))];
    expect((await apply(changes, { paths: ["b/"] })).applied).toEqual(["b/new"]);
    expect(Object.keys(readTree(folder))).toEqual(["a/old", "b/new"]);
    expect((await apply(changes, { paths: ["a"] })).applied).toEqual(["a/old"]);
    expect(Object.keys(readTree(folder))).toEqual(["b/new"]);
    await expect(apply(changes, { paths: ["nowhere"] })).rejects.toMatchObject({
      code: "invalid",
      message: expect.stringContaining("nowhere"),
    });
  });
});

describe("applying refuses", () => {
  const unsafe = (promise: Promise<unknown>) => expect(promise).rejects.toMatchObject({ code: "unsafe" });

  test.each([
    "../out",
    "/abs",
    "a/../../b",
    ".git/hooks/pre-commit",
    "sub/.GIT/config",
    "git~1/config",
    "a//b",
    "x\ny",
    ".caisson-apply/journal.json",
  ])("%j", async (path) => {
    const result = await apply([change(path, null, file("x")), change("ok", null, file("ok"))]);
    expect(result).toEqual({ applied: ["ok"], skipped: [{ path, reason: expect.any(String) }] });
    expect(Object.keys(readTree(base))).toEqual(["folder/ok"]);
  });

  test("links that lead out or into git, and nothing else is applied either", async () => {
    for (const target of ["/etc/passwd", "../out", "a/../../out", ".git/config"]) {
      await unsafe(apply([change("ok", null, file("x")), change("l", null, link(target))]));
      expect(readdirSync(folder)).toEqual([]);
    }
    await apply([change("d/l", null, link("../ok"))]);
  });

  test("to go through a link of the user's", async () => {
    mkdirSync(join(base, "elsewhere"));
    symlinkSync(join(base, "elsewhere"), join(folder, "d"));
    await unsafe(apply([change("d/x", null, file("x"))]));
    expect(readdirSync(join(base, "elsewhere"))).toEqual([]);
    await apply([change("d", link(join(base, "elsewhere")), null), change("d/x", null, file("x"))]);
    expect(readTree(folder)).toEqual({ "d/x": "file 644 x" });
    expect(readdirSync(join(base, "elsewhere"))).toEqual([]);
  });

  test("a repository that is not called .git", async () => {
    const planted = ["lib/HEAD", "lib/config", "lib/objects/x", "lib/refs/x"].map((path) => change(path, null, file("x")));
    const result = await apply([...planted, change("libs/HEAD", null, file("a heading"))]);
    expect(result.applied).toEqual(["libs/HEAD"]);
    expect(result.skipped.map(({ path }) => path)).toEqual(["lib/HEAD", "lib/config", "lib/objects/x", "lib/refs/x"]);
    put("two/objects/x", "x");
    put("two/refs/x", "x");
    expect((await apply([change("two/HEAD", null, file("x"))])).applied).toEqual([]);
  });

  test("what tools act on, unless it is named or asked for", async () => {
    const changes = [".envrc", ".vscode/tasks.json", ".github/workflows/x.yml", "a/.npmrc"].map((path) => change(path, null, file("x")));
    expect(await apply(changes)).toMatchObject({ applied: [], skipped: [{}, {}, {}, {}] });
    expect((await apply(changes, { paths: [".", ".envrc"] })).applied).toEqual([".envrc"]);
    expect((await apply(changes.slice(1), { includeConfiguration: true })).applied).toHaveLength(3);
  });

  test("to go over the user's own edits", async () => {
    put("a", "mine\n");
    await expect(apply([change("ok", null, file("x")), change("a", file("theirs\n"), file("new\n"))])).rejects.toMatchObject({
      code: "conflict",
    });
    const edits = [change("a", file("mine\n"), file("new\n"), { changedOutside: true })];
    await expect(apply(edits)).rejects.toMatchObject({
      code: "conflict",
      message: expect.stringContaining("a in "),
      details: { paths: ["a"] },
    });
    expect(readTree(folder)).toEqual({ a: "file 644 mine\n" });
    await apply(edits, { force: true });
    expect(readTree(folder)).toEqual({ a: "file 644 new\n" });
  });

  test("while another one is at work", async () => {
    mkdirSync(join(folder, ".caisson-apply"));
    writeFileSync(join(folder, ".caisson-apply", "applier.json"), JSON.stringify(self));
    await expect(apply([change("a", null, file("x"))], { alive: () => true })).rejects.toMatchObject({ code: "conflict" });
    await apply([change("a", null, file("x"))]);
    expect(readdirSync(folder)).toEqual(["a"]);
  });

  test("a journal that somebody planted", async () => {
    writeFileSync(join(base, "victim"), "v");
    mkdirSync(join(folder, ".caisson-apply"));
    writeFileSync(join(folder, ".caisson-apply", "old-0"), "evil");
    writeFileSync(
      join(folder, ".caisson-apply", "journal.json"),
      JSON.stringify([{ kind: "keep", path: "../victim", kept: "old-0", replaced: true }]),
    );
    await apply([change("a", null, file("x"))]);
    expect(readFileSync(join(base, "victim"), "utf8")).toBe("v");
    expect(readdirSync(folder)).toEqual(["a"]);
  });

  test("a folder that is not there", async () => {
    await expect(apply([change("a", null, file("x"))], { folder: join(base, "no") })).rejects.toMatchObject({ code: "not_found" });
  });
});
