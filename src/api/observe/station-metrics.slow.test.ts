import { expect, test } from "vitest";
import { countedRuns } from "./station-metrics.ts";

test("counts runs by state, however many there are", () => {
  const runs = [{ status: "running" }, { status: "paused" }, { status: "running" }] as const;
  const more = 5_000_000_000;
  expect(countedRuns({ runs, total: 3 + more }, { total: more })).toEqual([
    { labels: { state: "running" }, value: 2 },
    { labels: { state: "paused" }, value: 1 },
    { labels: { state: "open" }, value: more },
    { labels: { state: "ended" }, value: more },
  ]);
  expect(countedRuns({ runs: [], total: 0 }, { total: 0 })).toEqual([]);
});
