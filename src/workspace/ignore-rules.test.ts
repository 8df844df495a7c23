import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { tries } from "../../test/support/thorough.ts";
import { createIgnoreRules, openIgnoreRules, withoutIgnored } from "./ignore-rules.ts";

let base = "";
let repository = "";
beforeAll(() => {
  base = mkdtempSync(join(tmpdir(), "caisson-ignore-"));
  repository = join(base, "repository");
  execFileSync("git", ["init", "-q", repository]);
});
afterAll(() => rmSync(base, { recursive: true, force: true }));

const rulesOf = (files: Record<string, string>) => createIgnoreRules(async (folder) => files[folder] ?? null);

/** Returns the paths that git ignores with these files. */
function gitIgnores(files: Record<string, string>, paths: readonly string[]): string[] {
  for (const [at, text] of Object.entries(files)) {
    mkdirSync(join(repository, at), { recursive: true });
    writeFileSync(join(repository, at, ".gitignore"), text);
  }
  try {
    const input = paths.join("\0");
    return execFileSync("git", ["-C", repository, "check-ignore", "-z", "--stdin", "--no-index"], { input })
      .toString()
      .split("\0")
      .filter(Boolean);
  } catch (error) {
    if ((error as { status: number }).status === 1) return [];
    throw error;
  } finally {
    for (const at of Object.keys(files)) rmSync(join(repository, at, ".gitignore"));
  }
}

async function same(files: Record<string, string>, paths: readonly string[]): Promise<void> {
  const rules = rulesOf(files);
  const own: string[] = [];
  for (const path of paths) if (await rules.ignores(path)) own.push(path);
  expect(own, JSON.stringify(files)).toEqual(gitIgnores(files, paths));
}

const name = fc.constantFrom("a", "b", "ab", "a.log", "dist", "é", "x y", "[a]", "a\\b");
const path = fc.array(name, { minLength: 1, maxLength: 4 }).map((parts) => parts.join("/"));
const piece = fc.constantFrom("a", "b", "*", "**", "?", "/", "[ab]", "[!a]", "[a-c]", ".log", "dist", "!", "#", "\\", " ", "é", "x y");
const line = fc.array(piece, { minLength: 1, maxLength: 5 }).map((parts) => parts.join(""));
const text = fc.array(line, { maxLength: 5 }).map((lines) => `${lines.join("\n")}\n`);

test("ignores the same files as git for random patterns", async () => {
  await fc.assert(
    fc.asyncProperty(text, text, fc.uniqueArray(path, { minLength: 1, maxLength: 20 }), async (top, deep, paths) => {
      const isFile = new Set(paths);
      // A path cannot be both a file and a folder.
      const possible = paths.filter((each) => !paths.some((other) => other.startsWith(`${each}/`)) && !isFile.has(dirname(each)));
      await same(
        { "": top, a: deep },
        possible.filter((each) => each !== "a"),
      );
    }),
    { numRuns: tries(100, 15) },
  );
});

test("treats stars within a name like git", async () => {
  const paths = ["a/x y/a", "aa", "ab/a", "a/b/c/a", "x/ab/c", "x/a", "x/b/a", "b/ab/a"];
  for (const pattern of ["a**/a", "a***/a", "x/a**", "/a**/**/a", "?**/a", "***/a", "x/***", "b**/ab**/a", "a**\\/a"])
    await same(
      { "": `${pattern}\n`, a: "\n" },
      paths.filter((each) => each !== "a"),
    );
});

test("treats an escaped slash like git", async () => {
  const paths = ["a/dist", "é", "a/a", "b/a", "b/c/a", "a/b", "a/c/b"];
  for (const pattern of ["**\\/a", "**\\/**\\/a", "a/**\\/b", "**\\/", "*\\/a", "\\/a", "a\\/b", "a\\//b", "a/\\**/b", "[a]\\/a"])
    await same({ "": `${pattern}\n`, a: "\n" }, paths);
});

test("handles common patterns, and is fast where a regular expression is not", async () => {
  await same(
    {
      "": "node_modules/\n*.log\n!keep.log\n/build\n**/cache/\ndoc/**/*.txt\n# no\n\\#yes\ntrailing \nout/*\n!out/kept\n",
      src: "*.tmp\n!x.tmp\n",
    },
    [
      "node_modules/x/y.js",
      "a.log",
      "keep.log",
      "src/build",
      "build/x",
      "a/b/cache/c",
      "doc/a.txt",
      "doc/a/b/c.txt",
      "#yes",
      "trailing",
      "out/x",
      "out/kept",
      "src/a.tmp",
      "src/x.tmp",
    ],
  );
  const slow = rulesOf({ "": `${"*a".repeat(100)}b` });
  expect(await slow.ignores("a".repeat(4000))).toBe(false);
});

test("reads the user's own files from the repository root down, but no links", async () => {
  const folder = mkdtempSync(join(base, "user-"));
  mkdirSync(join(folder, ".git"));
  mkdirSync(join(folder, "part/linked"), { recursive: true });
  writeFileSync(join(folder, ".gitignore"), "dist/\n/part/only\n");
  writeFileSync(join(base, "outside"), "*\n");
  symlinkSync(join(base, "outside"), join(folder, "part/linked/.gitignore"));
  using rules = openIgnoreRules(join(folder, "part"));
  expect(await Promise.all(["dist/a", "only", "deep/only", "linked/a"].map((each) => rules.ignores(each)))).toEqual([
    true,
    true,
    false,
    false,
  ]);
});

test("leaves out only new files that are not named", async () => {
  const rules = rulesOf({ "": "dist/\n*.log\n" });
  const candidates = ["a.ts", "dist/a", "dist/b", "src/x.log", "y.log"];
  const leaveOut = (options: { includeIgnored?: boolean; paths?: string[] } = {}) =>
    withoutIgnored(candidates, { rules, isNew: async (each) => each !== "y.log", ...options });
  expect(await leaveOut()).toEqual({ kept: ["a.ts", "y.log"], ignored: 3 });
  expect(await leaveOut({ includeIgnored: true })).toEqual({ kept: candidates, ignored: 0 });
  expect(await leaveOut({ paths: ["dist/", "src"] })).toEqual({ kept: ["a.ts", "dist/a", "dist/b", "y.log"], ignored: 1 });
  expect(await leaveOut({ paths: ["src/x.log", "."] })).toEqual({ kept: ["a.ts", "src/x.log", "y.log"], ignored: 2 });
});
