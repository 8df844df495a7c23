import { expect, test } from "vitest";
import type { ChangedFile } from "../../../../src/contract/session/session-verbs.ts";
import { comparedFiles, countLines } from "./compared-files.ts";

const file = (path: string, digest: string | null, more: Partial<ChangedFile> = {}): ChangedFile => ({
  ...{ path, digest, from: null, kind: digest === null ? "removed" : "modified", binary: false },
  ...{ linesAdded: 2, linesRemoved: 1, changedOutside: false, heldBack: null },
  ...more,
});
const groups = (one: ChangedFile[], other: ChangedFile[]) => comparedFiles(one, other).map(({ path, group }) => `${group} ${path}`);

test("groups files by who changed them, and whether to the same content", () => {
  expect(groups([file("a", "1"), file("b", "1"), file("c", "1")], [file("b", "1"), file("c", "2"), file("d", "1")])).toEqual([
    ...["different c", "one a", "other d", "same b"],
  ]);
});

test("a removal is a change like others", () => {
  expect(groups([file("a", null), file("b", null)], [file("a", null), file("b", "2")])).toEqual(["different b", "same a"]);
});

test("a renamed file is gone from its old path", () => {
  const renamed = file("new", "1", { from: "old", kind: "renamed" });
  expect(groups([renamed], [file("old", null)])).toEqual(["one new", "same old"]);
  expect(groups([renamed], [file("old", "2")])).toEqual(["different old", "one new"]);
});

test("counts files and lines", () => {
  expect(countLines([file("a", "1"), file("b", null)])).toEqual({ files: 2, added: 4, removed: 2 });
});
