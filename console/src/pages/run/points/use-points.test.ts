import { expect, test } from "vitest";
import { pointBefore, pointInAddress, pointWords } from "./use-points.ts";

const points = [0, 3, 7].map((step, index) => ({ run: "run_a", step, turn: index + 1, at: "2026-01-01T00:00:00.000Z" }));

test("finds the last point up to a step", () => {
  expect(pointBefore(points, 0)?.step).toBe(0);
  expect(pointBefore(points, 5)?.step).toBe(3);
  expect(pointBefore(points, 90)?.step).toBe(7);
  expect(pointBefore([], 5)).toBeUndefined();
});

test("reads an existing point from the address, or the present", () => {
  expect(pointInAddress(points, "3")?.step).toBe(3);
  for (const at of [null, "", "4", "x", "-1"]) expect(pointInAddress(points, at)).toBeNull();
});

test("names a point by its step", () => {
  expect(pointWords({ step: 0 })).toBe("before the first step");
  expect(pointWords({ step: 3 })).toBe("after step 3");
});
