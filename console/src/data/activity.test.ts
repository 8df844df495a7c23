import { expect, test } from "vitest";
import { activityOf, moveOn, recordActivity } from "./activity.ts";

test("shifts counts over time and forgets quiet runs", () => {
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

test("remembers a bounded number of runs", () => {
  for (let run = 0; run < 600; run += 1) recordActivity(`r${run}`, 5_000_000);
  expect(activityOf("r0")).toEqual([]);
  expect(activityOf("r599").at(-1)).toBe(1);
});
