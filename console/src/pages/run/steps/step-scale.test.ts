import { expect, test } from "vitest";
import type { TimelineStep } from "../../../../../src/contract/run/run-timeline.ts";
import { changedText, chosenStep, comparedStep, positionText, stepBars } from "./step-scale.ts";

const at = "2026-06-01T12:00:00.000Z";
const step = (number: number, more: Partial<TimelineStep> = {}): TimelineStep => ({
  ...{ step: number, at, isInherited: false, text: "", tools: [], files: 0, bytes: 0, costUsd: null, isStored: true },
  ...more,
});

test("draws one bar for each step, the highest for the largest change", () => {
  const bars = stepBars([step(1, { isInherited: true }), step(2, { files: 3, bytes: 4000 }), step(3, { files: null, bytes: null })]);
  expect(bars.map(({ first, last }) => [first, last])).toEqual([1, 2, 3].map((number) => [number, number]));
  expect(bars.map(({ height }) => height)).toEqual([0.12, 1, 0.12]);
  expect(bars.map(({ isInherited }) => isInherited)).toEqual([true, false, false]);
  expect(stepBars([])).toEqual([]);
});

test("draws many steps with few bars, which cover all of them", () => {
  const bars = stepBars(Array.from({ length: 10_000 }, (_, index) => step(index + 1)));
  expect(bars.length).toBeLessThanOrEqual(240);
  expect([bars[0]?.first, bars.at(-1)?.last]).toEqual([1, 10_000]);
});

test("takes the step from the address, and the last one for anything else", () => {
  const steps = [step(1), step(2), step(3)];
  for (const [named, chosen] of [
    ["2", 2],
    ["0", 0],
    [null, 3],
    ["", 3],
    ["x", 3],
    ["-1", 3],
    ["99", 3],
  ] as const)
    expect(chosenStep(steps, named)).toBe(chosen);
  expect(chosenStep([], "2")).toBe(0);
});

test("compares with the last stored step before, or an earlier one that is named", () => {
  const steps = [step(1), step(2, { isStored: false }), step(3), step(4)];
  expect(comparedStep(steps, { step: 4, named: null })).toBe(3);
  expect(comparedStep(steps, { step: 3, named: null })).toBe(1);
  expect(comparedStep(steps, { step: 4, named: "0" })).toBe(0);
  expect(comparedStep(steps, { step: 2, named: "3" })).toBe(1);
  expect(comparedStep(steps, { step: 1, named: null })).toBe(0);
  expect(comparedStep(steps, { step: 0, named: null })).toBeNull();
  expect(comparedStep([step(1, { isStored: false }), step(2)], { step: 2, named: null })).toBeNull();
});

test("says what a step changed and cost", () => {
  expect(changedText({ files: 2, bytes: 2048 })).toBe("2 files, 2 KiB");
  expect(changedText({ files: 1, bytes: null })).toBe("1 file");
  expect([changedText({ files: 0, bytes: 0 }), changedText({ files: null, bytes: null })]).toEqual(["no changes", "unknown changes"]);
  expect(positionText([step(1, { costUsd: 0.5 }), step(2)], 1)).toBe("step 1 of 2: no changes, $0.50");
  expect(positionText([step(1)], 0)).toBe("before the first step");
});
