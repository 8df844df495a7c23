import { expect, test } from "vitest";
import { activityOf, moveOn, recordActivity } from "./activity.ts";

test("counts move to the left as time goes by, and a quiet run is forgotten", () => {
  const atMs = 1_000_000;
  recordActivity("one", atMs);
  recordActivity("one", atMs + 1_000);
  recordActivity("one", atMs + 20_000);
  expect(activityOf("one").slice(-3)).toEqual([2, 0, 1]);
  moveOn(atMs + 30_000);
  expect(activityOf("one").slice(-4)).toEqual([2, 0, 1, 0]);
  moveOn(atMs + 1_000_000);
  expect(activityOf("one")).toEqual([]);
});

test("no more runs are remembered than there is room for", () => {
  for (let run = 0; run < 600; run += 1) recordActivity(`r${run}`, 5_000_000);
  expect(activityOf("r0")).toEqual([]);
  expect(activityOf("r599").at(-1)).toBe(1);
});
