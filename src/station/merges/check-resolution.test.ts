import { expect, test } from "vitest";
import type { ConflictedFile } from "../../contract/merge/merge-event.ts";
import type { FileSide } from "../../workspace/change.ts";
import { checkResolution } from "./check-resolution.ts";
import { sideOfMarked } from "./conflict-files.ts";
import { leastConflictsFirst } from "./plan-merge.ts";

const text = (...lines: string[]): FileSide => ({ kind: "file", mode: 0o644, content: Buffer.from(`${lines.join("\n")}\n`) });
const sides = { base: "100644", merged: "100644", theirs: "100644" } as const;
const files: ConflictedFile[] = [{ path: "a", kind: "content", sides }];
const marked = text("ONE", "<<<<<<< merged", "x", "||||||| base", "2", "=======", "y", ">>>>>>> side-1", "THREE");
const conflicted = new Map<string, FileSide | null>([
  ["a", marked],
  [".caisson-merge/1.base", text("1", "2", "3")],
  [".caisson-merge/1.merged", text("ONE", "x", "3")],
  [".caisson-merge/1.theirs", text("1", "y", "THREE")],
  ["other", text("kept")],
]);
const resolvedWith = (changes: Record<string, FileSide | null | undefined>) => {
  const all = new Map(conflicted);
  for (const [path, side] of Object.entries(changes)) side === undefined ? all.delete(path) : all.set(path, side);
  return all;
};
const check = (changes: Record<string, FileSide | null | undefined>) => checkResolution(files, conflicted, resolvedWith(changes));

test("accepts only a resolution without markers that changes nothing else", () => {
  expect(check({ a: text("ONE", "x and y", "THREE") })).toBeNull();
  expect(check({ a: text("ONE", "THREE"), ".caisson-merge/1.base": undefined })).toBeNull();
  expect(check({})).toBe('Conflict markers are left in "a".');
  expect(check({ a: text("ONE", "x", "=======", "THREE") })).toContain("markers are left");
  expect(check({ a: text("ONE", "x", "3") })).toContain("Lines outside the conflict were removed");
  expect(check({ a: text("THREE", "x", "ONE") })).toContain("Lines outside the conflict");
  expect(check({ a: null })).toBe('Files that neither side removed are missing: "a".');
  // Without a change, the file has its original content.
  expect(check({ a: undefined })).toContain("Lines outside the conflict");
  expect(check({ a: { kind: "link", mode: 0o777, content: Buffer.from("b") } })).toContain("Lines outside the conflict");
  const good = { a: text("ONE", "x and y", "THREE") };
  expect(check({ ...good, other: text("lost") })).toBe('Files that are not in conflict were changed: "other".');
  expect(check({ ...good, other: undefined })).toContain('"other"');
  expect(check({ ...good, "src/new": text("more") })).toContain('"src/new"');
  expect(check({ ...good, other: { ...text("kept"), mode: 0o755 } })).toContain('"other"');
});

test("lines that look like markers but existed before are not markers", () => {
  const heading = new Map(conflicted).set(".caisson-merge/1.theirs", text("1", "=======", "THREE"));
  expect(checkResolution(files, heading, new Map(heading).set("a", text("ONE", "x", "=======", "THREE")))).toBeNull();
});

test("a file that cannot be marked is unresolved until it is replaced or removed", () => {
  const binary: ConflictedFile[] = [{ path: "b", kind: "not_text", sides }];
  const standIn = new Map<string, FileSide | null>([["b", text("<<<<<<< merged", "(…)", "=======", "(…)", ">>>>>>> theirs")]]);
  const resolved = (side: FileSide | null) => checkResolution(binary, standIn, new Map([["b", side]]));
  expect(checkResolution(binary, standIn, standIn)).toContain("markers are left");
  expect(resolved({ kind: "file", mode: 0o644, content: Buffer.from([1, 0, 2]) })).toBeNull();
  expect(resolved(null)).toBeNull();
});

test("takes one side of each conflict, and keeps the rest", () => {
  expect(sideOfMarked(marked.content, "merged").toString()).toBe("ONE\nx\nTHREE\n");
  expect(sideOfMarked(marked.content, "theirs").toString()).toBe("ONE\ny\nTHREE\n");
  expect(
    checkResolution(files, conflicted, resolvedWith({ a: { ...marked, content: sideOfMarked(marked.content, "theirs") } })),
  ).toBeNull();
});

test("orders sessions by the fewest conflicts, then as they were named", () => {
  expect(leastConflictsFirst(["a", "b", "c"], [])).toEqual(["a", "b", "c"]);
  expect(leastConflictsFirst(["a", "b", "c"], [{ sessions: ["a", "c"], files: 1 }])).toEqual(["b", "a", "c"]);
  const clashes = [
    { sessions: ["a", "b"] as [string, string], files: 5 },
    { sessions: ["a", "c"] as [string, string], files: 1 },
    { sessions: ["b", "d"] as [string, string], files: 1 },
  ];
  expect(leastConflictsFirst(["a", "b", "c", "d"], clashes)).toEqual(["c", "d", "a", "b"]);
});
