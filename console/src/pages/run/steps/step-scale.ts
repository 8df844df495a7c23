import type { TimelineStep } from "../../../../../src/contract/run/run-timeline.ts";
import { bytes, cost, plural } from "../../../parts/amounts.ts";

/** More bars would be narrower than a pixel on a phone. */
const BARS_MAX = 240;
const HEIGHT_MIN = 0.12;

type ScaledStep = Pick<TimelineStep, "step" | "files" | "bytes" | "isInherited" | "isStored">;

/** A bar of the scrubber: one step, or several neighbors if there are many. */
export interface StepBar {
  first: number;
  last: number;
  /** Between 0 and 1: how much these steps changed, compared with the run's largest step. */
  height: number;
  isInherited: boolean;
  isStored: boolean;
}

/** Returns the bars of a run. Heights are logarithmic, because one step may write a thousand times more than another. */
export function stepBars(steps: readonly ScaledStep[]): StepBar[] {
  const perBar = Math.max(1, Math.ceil(steps.length / BARS_MAX));
  const size = (step: ScaledStep) => Math.log2(1 + (step.files ?? 0) + (step.bytes ?? 0));
  const largest = Math.max(1, ...steps.map(size));
  const bars: StepBar[] = [];
  for (let at = 0; at < steps.length; at += perBar) {
    const together = steps.slice(at, at + perBar);
    const [first, last] = [together[0], together.at(-1)];
    if (first === undefined || last === undefined) continue;
    bars.push({
      first: first.step,
      last: last.step,
      height: Math.max(HEIGHT_MIN, ...together.map((step) => size(step) / largest)),
      isInherited: together.every(({ isInherited }) => isInherited),
      isStored: together.some(({ isStored }) => isStored),
    });
  }
  return bars;
}

/** Returns the step that the address names, or the last one. 0 is before the first step. */
export function chosenStep(steps: readonly Pick<TimelineStep, "step">[], named: string | null): number {
  const last = steps.at(-1)?.step ?? 0;
  const step = Number(named);
  if (named === null || named === "" || !Number.isInteger(step) || step < 0) return last;
  return Math.min(step, last);
}

/**
 * Returns the step to compare with: the one that the address names, or the last stored one before. A step is not
 * compared with a later one. Null if no such step is stored: then all changes since the beginning are shown.
 */
export function comparedStep(
  steps: readonly Pick<TimelineStep, "step" | "isStored">[],
  { step, named }: { step: number; named: string | null },
): number | null {
  const base = named === null || named === "" ? Number.NaN : Number(named);
  if (Number.isInteger(base) && base >= 0 && base < step) return base;
  if (step <= 1) return step === 1 ? 0 : null;
  return steps.findLast((each) => each.isStored && each.step < step)?.step ?? null;
}

/** Says in a few words what a step changed. */
export function changedText({ files, bytes: size }: Pick<TimelineStep, "files" | "bytes">): string {
  if (files === null) return "unknown changes";
  if (files === 0) return "no changes";
  return size === null ? plural(files, "file") : `${plural(files, "file")}, ${bytes(size)}`;
}

/** Describes the position of the scrubber for screen readers. */
export function positionText(steps: readonly TimelineStep[], chosen: number): string {
  const step = steps.find((each) => each.step === chosen);
  if (step === undefined) return "before the first step";
  const price = step.costUsd === null ? "" : `, ${cost(step.costUsd)}`;
  return `step ${chosen} of ${steps.at(-1)?.step ?? chosen}: ${changedText(step)}${price}`;
}
