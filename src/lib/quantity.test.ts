import { expect, test } from "vitest";
import { parseBytes, parseCount, parseDuration, parseNumber, showBytes, showDuration } from "./quantity.ts";

test.each([
  ["512m", 512 * 2 ** 20],
  ["4g", 4 * 2 ** 30],
  ["1.5GiB", 1.5 * 2 ** 30],
  ["10KB", 10_240],
  ["77", 77],
])("%s is %d bytes", (text, bytes) => expect(parseBytes("memory", text)).toBe(bytes));

test.each([
  ["30s", 30_000],
  ["5m", 300_000],
  ["250ms", 250],
  ["2", 2000],
  ["1.5h", 5_400_000],
])("%s is %d milliseconds", (text, ms) => expect(parseDuration("timeout", text)).toBe(ms));

test.each(["", "0", "-1", "m", "4x", "1e3", "0x10", "١", "1 000", "9".repeat(40)])("%j is neither", (text) => {
  expect(() => parseBytes("memory", text)).toThrow(expect.objectContaining({ code: "invalid" }));
  expect(() => parseDuration("timeout", text)).toThrow(expect.objectContaining({ code: "invalid" }));
});

test("counts are whole, numbers need not be", () => {
  expect(parseCount("pids", "12")).toBe(12);
  expect(() => parseCount("pids", "1.5")).toThrow("--pids");
  expect(parseNumber("cpus", "1.5")).toBe(1.5);
  expect(() => parseNumber("cpus", "Infinity")).toThrow("--cpus");
});

test("figures as people read them", () => {
  expect([showBytes(null), showBytes(12), showBytes(1536), showBytes(256 * 2 ** 20)]).toEqual(["–", "12 B", "1.5 KiB", "256 MiB"]);
  expect([showDuration(0.82), showDuration(29), showDuration(30_000), showDuration(90_000)]).toEqual(["0.8 ms", "29 ms", "30 s", "2 min"]);
});
