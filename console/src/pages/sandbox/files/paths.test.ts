import { expect, test } from "vitest";
import { findNames, folderOf, foldersTo, isWithin, joinPath, nameOf, nameProblem } from "./paths.ts";

test("joins and splits paths", () => {
  expect(joinPath("/", "a")).toBe("/a");
  expect(joinPath("/a", "b")).toBe("/a/b");
  expect([nameOf("/a/b"), nameOf("/"), folderOf("/a/b"), folderOf("/a")]).toEqual(["b", "/", "/a", "/"]);
  expect(foldersTo("/workspace/a/b/c.txt", "/workspace")).toEqual(["/workspace", "/workspace/a", "/workspace/a/b"]);
  expect(foldersTo("/etc/passwd", "/workspace")).toEqual([]);
  expect(foldersTo("/etc/passwd", "/")).toEqual(["/", "/etc"]);
  expect([isWithin("/ab", "/a"), isWithin("/a/b", "/a"), isWithin("/a", "/")]).toEqual([false, true, true]);
});

test("rejects names that are not valid in a folder", () => {
  for (const name of ["", ".", "..", "a/b", "a\0", "é".repeat(128)]) expect(nameProblem(name)).not.toBe(null);
  for (const name of ["a", "...", " ", "<b>", "é".repeat(127)]) expect(nameProblem(name)).toBe(null);
});

test("ranks matches in the name first, then in the path, then letters in order", () => {
  const paths = ["/w/readme.md", "/w/md/a.txt", "/w/src/main.ts", "/w/m/x/d.c"];
  expect(findNames(paths, "md", { max: 9 })).toEqual(["/w/readme.md", "/w/md/a.txt", "/w/m/x/d.c"]);
  expect(findNames(paths, "MAIN", { max: 9 })).toEqual(["/w/src/main.ts"]);
  expect(findNames(paths, "", { max: 9 })).toEqual([]);
  expect(findNames(paths, "w", { max: 2 }).length).toBe(2);
});
