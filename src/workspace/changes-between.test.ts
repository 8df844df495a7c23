import { expect, test } from "vitest";
import type { Change, Changes, FileSide } from "./change.ts";
import { changesBetween } from "./changes-between.ts";

const side = (text: string): FileSide => ({ kind: "file", mode: 0o644, content: Buffer.from(text) });
const change = (path: string, before: string | null, after: string | null, from: string | null = null): Change => ({
  ...{ path, from, changedOutside: false },
  before: before === null ? null : side(before),
  after: after === null ? null : side(after),
});
const state = (...changes: Change[]): Changes => ({ changes, leftOut: [], ignored: 0 });
const between = (before: Changes, after: Changes) =>
  changesBetween(before, after).changes.map((each) => [
    each.path,
    each.from,
    each.before?.content.toString() ?? null,
    each.after?.content.toString() ?? null,
  ]);

test("shows only what differs between the two states", () => {
  const first = state(change("a", "0", "1"), change("b", null, "new"), change("gone", "x", null));
  const second = state(change("a", "0", "2"), change("b", null, "new"), change("c", "c0", "c1"));
  expect(between(first, second)).toEqual([
    ["a", null, "1", "2"],
    ["c", null, "c0", "c1"],
    ["gone", null, null, "x"],
  ]);
  expect(between(second, first)).toEqual([
    ["a", null, "2", "1"],
    ["c", null, "c1", "c0"],
    ["gone", null, "x", null],
  ]);
  expect(between(first, first)).toEqual([]);
});

test("follows a file that was moved in one of the states", () => {
  const text = "a line that is long enough to be found again\n".repeat(5);
  const moved = state(change("to", text, text, "from"));
  expect(between(state(), moved)).toEqual([["to", "from", text, text]]);
  expect(between(moved, state())).toEqual([["from", "to", text, text]]);
});
