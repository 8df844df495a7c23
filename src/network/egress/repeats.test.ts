import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createRepeats } from "./repeats.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function heard(given: { differentMax: number; windowMs?: number }) {
  const told: [string, number][] = [];
  const repeats = createRepeats<string>({
    ...given,
    tell: (item, count) => told.push([item, count]),
    keyOf: (item) => item.split("?")[0] ?? "",
    summarised: () => "*",
  });
  return { told, repeats };
}

test("the first is told at once, the same again in one at the window's end, and then it begins anew", () => {
  const { told, repeats } = heard({ differentMax: 10, windowMs: 1000 });
  for (const item of ["a?1", "a?2", "b?1", "a?3"]) repeats.add(item);
  expect(told).toEqual([
    ["a?1", 1],
    ["b?1", 1],
  ]);
  vi.advanceTimersByTime(1000);
  expect(told.slice(2)).toEqual([["a?3", 2]]);
  repeats.add("a?4");
  expect(told.slice(3)).toEqual([["a?4", 1]]);
});

test("without a window only the end tells what was counted, once", () => {
  const { told, repeats } = heard({ differentMax: 10 });
  for (const item of ["a", "a", "a"]) repeats.add(item);
  vi.advanceTimersByTime(3_600_000);
  expect(told).toEqual([["a", 1]]);
  repeats.flush();
  repeats.flush();
  expect(told).toEqual([
    ["a", 1],
    ["a", 2],
  ]);
});

test("something else each time is counted, too, once there are too many kinds", () => {
  const { told, repeats } = heard({ differentMax: 2 });
  for (let index = 0; index < 1000; index++) repeats.add(`item-${index}`);
  repeats.flush();
  expect(told).toEqual([
    ["item-0", 1],
    ["item-1", 1],
    ["*", 1],
    ["*", 997],
  ]);
});
