import { expect, test } from "vitest";
import { onePerStep, pointBefore, pointInAddress, pointWords } from "./use-points.ts";

const points = [0, 3, 7].map((step, index) => ({ run: "run_a", step, turn: index + 1, at: "2026-01-01T00:00:00.000Z" }));

test("finds the last point up to a step", () => {
  expect(pointBefore(points, 0)?.step).toBe(0);
  expect(pointBefore(points, 5)?.step).toBe(3);
  expect(pointBefore(points, 90)?.step).toBe(7);
  expect(pointBefore([], 5)).toBeUndefined();
});

test("prefers the point of a turn to that of the step before it", () => {
  const at = "2026-01-01T00:00:00.000Z";
  const turn = { run: "run_a", step: 2, turn: 2, at };
  const step = { run: "run_a", step: 2, at };
  const other = { run: "run_a", step: 1, at };
  expect(onePerStep([other, turn, step])).toEqual([other, turn]);
  expect(onePerStep([other, step, turn])).toEqual([other, turn]);
});

test("reads an existing point from the address, or the present", () => {
  const view = { run: "run_a", forked: null, createdAt: "2026-01-01T00:00:00.000Z" };
  expect(pointInAddress(points, { at: "3", view })?.step).toBe(3);
  for (const at of [null, "", "4", "x", "-1", "1.5"]) expect(pointInAddress(points, { at, view })).toBeNull();
});

test("a step that a fork inherited has a point", () => {
  const view = { run: "run_b", forked: { run: "run_a", step: 2, seq: 9, isTail: false }, createdAt: "2026-01-01T00:00:00.000Z" };
  expect([0, 2, 4].map((step) => pointInAddress([], { at: String(step), view })?.step)).toEqual([0, 2, undefined]);
});

test("names a point by its step", () => {
  expect(pointWords({ step: 0 })).toBe("before the first step");
  expect(pointWords({ step: 3 })).toBe("after step 3");
});
