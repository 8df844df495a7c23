import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createRepeats } from "./repeats.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function recordRepeats(options: { differentMax: number; windowMs?: number }) {
  const reports: [string, number][] = [];
  const repeats = createRepeats<string>({
    ...options,
    tell: (item, count) => reports.push([item, count]),
    keyOf: (item) => item.split("?")[0] ?? "",
    summarised: () => "*",
  });
  return { told: reports, repeats };
}

test("reports the first at once, repeats at the window's end, and then starts over", () => {
  const { told: reports, repeats } = recordRepeats({ differentMax: 10, windowMs: 1000 });
  for (const item of ["a?1", "a?2", "b?1", "a?3"]) repeats.add(item);
  expect(reports).toEqual([
    ["a?1", 1],
    ["b?1", 1],
  ]);
  vi.advanceTimersByTime(1000);
  expect(reports.slice(2)).toEqual([["a?3", 2]]);
  repeats.add("a?4");
  expect(reports.slice(3)).toEqual([["a?4", 1]]);
});

test("without a window, reports repeats only on flush, once", () => {
  const { told: reports, repeats } = recordRepeats({ differentMax: 10 });
  for (const item of ["a", "a", "a"]) repeats.add(item);
  vi.advanceTimersByTime(3_600_000);
  expect(reports).toEqual([["a", 1]]);
  repeats.flush();
  repeats.flush();
  expect(reports).toEqual([
    ["a", 1],
    ["a", 2],
  ]);
});

test("counts new kinds beyond the limit as one kind", () => {
  const { told: reports, repeats } = recordRepeats({ differentMax: 2 });
  for (let index = 0; index < 1000; index++) repeats.add(`item-${index}`);
  repeats.flush();
  expect(reports).toEqual([
    ["item-0", 1],
    ["item-1", 1],
    ["*", 1],
    ["*", 997],
  ]);
});
