import { expect, test } from "vitest";
import { type Entry, treeRows } from "./tree-rows.ts";

const entry = (name: string, kind: Entry["kind"] = "file"): Entry => ({
  name,
  kind,
  sizeBytes: 0,
  mode: 0,
  uid: 0,
  gid: 0,
  modifiedMs: 0,
  linkTarget: null,
});
const listings = new Map([
  ["/w", { entries: [entry("b10"), entry("b9"), entry("src", "directory"), entry("docs", "directory")], truncated: false }],
  ["/w/src", { entries: [entry("main.ts")], truncated: false }],
]);

test("sorts folders first and names numerically, and nests unfolded folders", () => {
  const rows = treeRows("/w", { open: new Set(["/w/src"]), listings });
  expect(rows.map(({ path, depth }) => `${depth} ${path}`)).toEqual(["0 /w/docs", "0 /w/src", "1 /w/src/main.ts", "0 /w/b9", "0 /w/b10"]);
});

test("marks an unfolded folder as loading until it is read", () => {
  const rows = treeRows("/w", { open: new Set(["/w/docs"]), listings });
  expect(rows.find(({ path }) => path === "/w/docs")).toMatchObject({ isOpen: true, isLoading: true });
  expect(treeRows("/nowhere", { open: new Set(), listings })).toEqual([]);
});
