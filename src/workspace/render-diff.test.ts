import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { cpuMs } from "../../test/support/cpu-time.ts";
import { changesBetween, edited, type Tree } from "../../test/support/random-trees.ts";
import { tries } from "../../test/support/thorough.ts";
import { describeTree, readTree, writeTree } from "../../test/support/tree-on-disk.ts";
import type { Change, FileSide } from "./change.ts";
import { pairRenames } from "./renames.ts";
import { diffStat, renderSections } from "./render-diff.ts";
import { renderDiff } from "./testing-diff.ts";

const file = (content: string, mode = 0o644): FileSide => ({ kind: "file", mode, content: Buffer.from(content, "latin1") });
const link = (target: string): FileSide => ({ kind: "link", mode: 0o777, content: Buffer.from(target) });
const tree = (files: Record<string, FileSide>): Tree => new Map(Object.entries(files));
const renderText = (before: Tree, after: Tree) => renderDiff(changesBetween(before, after)).toString("latin1");

/** Applies our diff to the old tree with git. */
function applied(before: Tree, after: Tree): Record<string, string> {
  const folder = mkdtempSync(join(tmpdir(), "caisson-test-"));
  try {
    writeTree(folder, before);
    // Git does not replace a link that leads in a circle.
    fc.pre(![...before.keys()].some((path) => leadsInACircle(join(folder, path))));
    const git = (...args: string[]) =>
      execFileSync("git", ["apply", "--whitespace=nowarn", ...args], {
        cwd: folder,
        input: renderDiff(changesBetween(before, after)),
        env: { PATH: process.env.PATH, GIT_CEILING_DIRECTORIES: tmpdir() },
        stdio: ["pipe", "pipe", "pipe"],
      });
    if (changesBetween(before, after).length > 0) {
      git("--check");
      git();
    }
    return readTree(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function leadsInACircle(path: string): boolean {
  try {
    statSync(path);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ELOOP";
  }
}

describe("a diff", () => {
  test("makes git turn any old tree into the new one", () => {
    fc.assert(
      fc.property(edited, ({ before, after }) => {
        expect(applied(before, after)).toEqual(describeTree(after));
      }),
      { numRuns: tries(60) },
    );
  });

  test.each<[string, Record<string, FileSide>, Record<string, FileSide>]>([
    ["a folder becomes a file", { "d/x": file("1\n"), "d/y/z": file("2\n") }, { d: file("3\n") }],
    ["a file becomes a folder", { d: file("3\n") }, { "d/x": file("1\n"), "d/y/z": file("2\n") }],
    ["a file becomes a link", { a: file("text\n") }, { a: link("b") }],
    ["a link becomes an executable", { a: link("b") }, { a: file("#!/bin/sh\n", 0o755) }],
    ["a link becomes a folder", { a: link("b") }, { "a/x": file("1\n") }],
    ["a link leads elsewhere", { a: link("b") }, { a: link("../../etc") }],
    ["an empty file is added, another removed", { "old empty": file("") }, { "new empty": file("", 0o755) }],
    ["only the mode changes", { "a b": file("x\n") }, { "a b": file("x\n", 0o755) }],
    [
      "binary, long and short",
      { a: file(`\0${"x".repeat(70_000)}`), b: file("\0") },
      { a: file("\0\xff"), b: file(`\0${"yz".repeat(5000)}`), c: file("\0\x01") },
    ],
    ["text becomes binary and back", { a: file("text\n"), b: file("\0bin") }, { a: file("\0bin"), b: file("text\n") }],
    ["moved with a new mode and a new line", { "a/f": file("1\n2\n3\n4\n") }, { "b/f": file("1\n2\n3\n4\n5\n", 0o755) }],
    ["the last newline is removed", { a: file("1\n2\n") }, { a: file("1\n2") }],
    [
      "names with terminal control characters",
      { "a\u009b2J": file("1\n"), "b\u202egnp": file("x\n") },
      { "a\u009b2J": file("2\n"), "c\u2028é": file("x\n") },
    ],
    ["not UTF-8", { a: file("caf\xe9\nx\n") }, { a: file("caf\xe9\ny\xff\n") }],
  ])("%s", (_, before, after) => {
    expect(applied(tree(before), tree(after))).toEqual(describeTree(tree(after)));
  });

  test("is empty for equal trees", () => {
    expect(renderText(tree({ a: file("1") }), tree({ a: file("1") }))).toBe("");
  });

  test("shows moves with their similarity, and lines around a change", () => {
    const lines = Array.from({ length: 20 }, (_, index) => `${index}\n`);
    const after = lines.toSpliced(10, 1, "ten\n");
    const text = renderText(tree({ old: file(lines.join("")) }), tree({ "new name": file(after.join("")) }));
    expect(text).toMatch(
      /^diff --git a\/old b\/new name\nsimilarity index 9\d%\nrename from old\nrename to new name\nindex [0-9a-f]{40}\.\.[0-9a-f]{40} 100644\n/,
    );
    expect(text).toContain("--- a/old\n+++ b/new name\t\n@@ -8,7 +8,7 @@\n 7\n 8\n 9\n-10\n+ten\n 11\n 12\n 13\n");
  });

  test("quotes names with terminal control characters, but not letters", () => {
    expect(renderText(tree({}), tree({ "é\u202egnp": file("x\n") }))).toContain(String.raw`+++ "b/\303\251\342\200\256gnp"`);
    expect(renderText(tree({}), tree({ größe: file("x\n") }))).toContain(Buffer.from("+++ b/größe").toString("latin1"));
  });

  test("counts lines and flags binary files", async () => {
    const changes = changesBetween(
      tree({ a: file("1\n2\n"), l: file("x\n") }),
      tree({ a: file("1\n3\n4\n"), b: file("\0"), l: link("a") }),
    );
    expect(await diffStat(changes)).toEqual([
      { path: "a", from: null, kind: "modified", binary: false, linesAdded: 2, linesRemoved: 1, changedOutside: false },
      { path: "b", from: null, kind: "added", binary: true, linesAdded: 0, linesRemoved: 0, changedOutside: false },
      { path: "l", from: null, kind: "modified", binary: false, linesAdded: 1, linesRemoved: 1, changedOutside: false },
    ]);
  });

  const other = (seed: number, lines: number) =>
    Array.from({ length: lines }, (_, index) => `${seed} ${index * 7919} ${"x".repeat(index % 30)}\n`);

  test.each([
    ["all of it", "", "", "\n"],
    ["except for the ends", "first\nsecond\nthird\nfourth\n", "end 1\nend 2\nend 3\nend 4\n", "\n"],
    ["without a last line break", "1\n", "", ""],
    ["with a shared last line without one", "1\n", "last", "\n"],
  ])("replaces very different files as a whole, in a form that git applies: %s", (_, start, end, last) => {
    const [a, b] = [other(1, 6000), other(2, 5000)].map((lines) => start + lines.join("").slice(0, -1) + last + end);
    const before = tree({ a: file(a as string) });
    const after = tree({ a: file(b as string) });
    expect(renderText(before, after)).toMatch(/@@ too different: \d+ lines replaced by \d+\n/);
    expect(applied(before, after)).toEqual(describeTree(after));
  });

  test("stays small for a small edit of a large file", () => {
    const lines = other(1, 60_000);
    for (const at of [0, 30_000, 59_999]) {
      const text = renderText(tree({ a: file(lines.join("")) }), tree({ a: file(lines.toSpliced(at, 1, "new\n").join("")) }));
      expect(text.split("\n").length).toBeLessThan(20);
      expect(text).toContain("\n+new\n");
    }
  });
});

describe("many large replaced files", () => {
  const content = (seed: number) => {
    const bytes = Buffer.alloc(500_000);
    for (let at = 0, state = seed + 1; at < bytes.length; at++) {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
      bytes[at] = at % 40 === 39 ? 10 : 97 + ((state >>> 16) % 26);
    }
    return bytes;
  };
  const sideOf = (seed: number): FileSide => ({ kind: "file", mode: 0o644, content: content(seed) });
  const bomb = (): Change[] => [
    ...Array.from({ length: tries(30, 8) }, (_, index) => ({
      path: `old-${index}`,
      from: null,
      before: sideOf(index),
      after: null,
      changedOutside: false,
    })),
    ...Array.from({ length: tries(30, 8) }, (_, index) => ({
      path: `new-${index}`,
      from: null,
      before: null,
      after: sideOf(100 + index),
      changedOutside: false,
    })),
    ...Array.from({ length: tries(30, 8) }, (_, index) => ({
      path: `same-${index}`,
      from: null,
      before: sideOf(200 + index),
      after: sideOf(300 + index),
      changedOutside: false,
    })),
  ];

  test("take seconds and bounded memory, and a move is still found", async () => {
    const changes = bomb();
    changes.push({
      path: "moved",
      from: null,
      before: null,
      after: { ...sideOf(5), content: Buffer.concat([content(5), Buffer.from("one more\n")]) },
      changedOutside: false,
    });
    const startedAt = cpuMs();
    const paired = pairRenames(changes);
    expect(paired.find((change) => change.path === "moved")?.from).toBe("old-5");
    const stats = await diffStat(paired);
    expect(stats.find((stat) => stat.path === "same-3")).toMatchObject({ linesAdded: 12_500, linesRemoved: 12_500 });
    let largest = 0;
    for (const section of renderSections(paired)) largest = Math.max(largest, section.length);
    expect(largest).toBeLessThan(2 * 1024 * 1024);
    expect(cpuMs() - startedAt).toBeLessThan(20_000);
  });

  test("can be cancelled", async () => {
    const stop = new AbortController();
    const changes = bomb();
    setImmediate(() => stop.abort());
    await expect(diffStat(Array.from({ length: 100 }, () => changes).flat(), { signal: stop.signal })).rejects.toMatchObject({
      code: "cancelled",
    });
  });
});

test("shows binary and big files as one line in a brief diff", () => {
  const big = `${"line\n".repeat(250_000)}`;
  const changes = changesBetween(
    tree({ "a.bin": file("\0old"), "b.txt": file("old\n"), "c.txt": file(big) }),
    tree({ "a.bin": file("\0newer"), "b.txt": file("new\n"), "c.txt": file(`${big}more\n`) }),
  );
  const text = Buffer.concat([...renderSections(changes, { brief: true })]).toString("latin1");
  expect(text).not.toContain("GIT binary patch");
  expect(text.split("\n").filter((row) => /^(Binary|Big|[-+][a-z])/.test(row))).toEqual([
    "Binary file: 4 B to 6 B",
    "-old",
    "+new",
    "Big file: 1.2 MiB to 1.2 MiB",
  ]);
  expect(renderDiff(changes).toString("latin1")).toContain("GIT binary patch");
});
