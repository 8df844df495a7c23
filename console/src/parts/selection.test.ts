import { expect, test } from "vitest";
import { nothingSelected, type Selection, type SelectionStep, step, withoutGone } from "./selection.ts";

const ids = ["a", "b", "c", "d"];
const after = (...steps: SelectionStep[]): Selection => steps.reduce((selection, each) => step(selection, ids, each), nothingSelected);

test("starts at the first or last row and stops at the ends", () => {
  expect(after({ kind: "move", by: 1 }).current).toBe("a");
  expect(after({ kind: "move", by: -1 }).current).toBe("d");
  expect(after({ kind: "move", by: 1 }, { kind: "move", by: 10 }).current).toBe("d");
  expect(step(nothingSelected, [], { kind: "move", by: 1 }).current).toBe(null);
});

test("selects rows one by one, by range, and all at once", () => {
  expect([...after({ kind: "move", by: 1 }, { kind: "toggle" }).chosen]).toEqual(["a"]);
  expect([...after({ kind: "toggle", id: "b" }, { kind: "toggle", id: "b" }).chosen]).toEqual([]);
  expect([...after({ kind: "toggle", id: "d" }, { kind: "range", id: "b" }).chosen].sort()).toEqual(["b", "c", "d"]);
  const extended = after({ kind: "move", by: 1 }, { kind: "move", by: 1, extends: true }, { kind: "move", by: 1, extends: true });
  expect([...extended.chosen]).toEqual(["a", "b", "c"]);
  expect(after({ kind: "all" }).chosen.size).toBe(4);
  expect(after({ kind: "all" }, { kind: "none" }).chosen.size).toBe(0);
});

test("deselects removed rows", () => {
  const all = after({ kind: "move", by: 1 }, { kind: "all" });
  expect(withoutGone(all, ids)).toBe(all);
  expect(withoutGone(all, ["b"])).toEqual({ current: null, chosen: new Set(["b"]), anchor: null });
});
