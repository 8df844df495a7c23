import { describe, expect, it } from "vitest";
import { recentRestarts } from "./restarts.ts";

const now = Date.parse("2030-01-02T12:00:00Z");
const HOUR_MS = 3_600_000;
const recent = (...ages: number[]) => recentRestarts({ restarts: ages.map((ageMs) => new Date(now - ageMs).toISOString()) }, now).length;

describe("recentRestarts", () => {
  it("counts the restarts of the last hour", () => {
    expect([recent(), recent(0), recent(1_000, HOUR_MS - 1), recent(HOUR_MS, 2 * HOUR_MS)]).toEqual([0, 1, 2, 0]);
  });
  it("ignores future restarts, which a clock that was set back leaves behind", () => {
    expect(recent(-24 * HOUR_MS, -60_000, 5_000)).toBe(1);
  });
});
