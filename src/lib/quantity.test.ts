import { expect, test } from "vitest";
import { bytesFrom, countFrom, durationFrom, numberFrom, showBytes, showDuration } from "./quantity.ts";

test.each([
  ["512m", 512 * 2 ** 20],
  ["4g", 4 * 2 ** 30],
  ["1.5GiB", 1.5 * 2 ** 30],
  ["10KB", 10_240],
  ["77", 77],
])("%s is %d bytes", (text, bytes) => expect(bytesFrom(text)).toBe(bytes));

test.each([
  ["30s", 30_000],
  ["5m", 300_000],
  ["250ms", 250],
  ["2", 2000],
  ["1.5h", 5_400_000],
])("%s is %d milliseconds", (text, ms) => expect(durationFrom(text)).toBe(ms));

test.each(["", "0", "-1", "m", "4x", "1e3", "0x10", "١", "1 000", "9".repeat(40)])("rejects %j as bytes and as a duration", (text) => {
  expect(bytesFrom(text)).toBeNull();
  expect(durationFrom(text)).toBeNull();
});

test("parses counts as whole numbers, and numbers with a fraction", () => {
  expect([countFrom("12"), countFrom("1.5"), countFrom("0")]).toEqual([12, null, null]);
  expect([numberFrom("1.5"), numberFrom("Infinity"), numberFrom("")]).toEqual([1.5, null, null]);
});

test("formats bytes and durations for people", () => {
  expect([showBytes(null), showBytes(12), showBytes(1536), showBytes(256 * 2 ** 20)]).toEqual(["–", "12 B", "1.5 KiB", "256 MiB"]);
  expect([0.82, 29, 30_000, 1500, 59_999].map(showDuration)).toEqual(["0.8 ms", "29 ms", "30 s", "1.5 s", "1 min"]);
  expect([60_000, 90_000, 150_000, 3_599_400].map(showDuration)).toEqual(["1 min", "1 min 30 s", "2 min 30 s", "59 min 59 s"]);
  expect([3_599_999, 3_600_000, 5_400_000, 90_000_000].map(showDuration)).toEqual(["1 h", "1 h", "1 h 30 min", "25 h"]);
});
