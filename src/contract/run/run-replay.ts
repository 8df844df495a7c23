import { z } from "zod";
import { RunId } from "../ids.ts";
import { CallId, ToolOutcome } from "./run.ts";

/** The longest pattern, and the most of them. Patterns are matched line by line in linear time. */
const PATTERN_CHARACTERS_MAX = 1000;
const PATTERNS_MAX = 50;

export const ReplayRun = z.strictObject({
  /** `recorded`: no tool runs. `live`: the tools run again, on a copy of the files that the session began with. */
  tools: z.enum(["recorded", "live"]).default("recorded"),
  /** For live tools: a line that matches one of these patterns equals every other line that matches it. */
  ignore: z.array(z.string().min(1).max(PATTERN_CHARACTERS_MAX)).max(PATTERNS_MAX).default([]),
  /** For live tools: whether the copy of the files stays, as a session. */
  keep: z.boolean().default(false),
  /**
   * Replay only this many steps, and then continue live: as a fork of the run at that step, whose conversation holds
   * them.
   */
  liveFrom: z.int().nonnegative().max(1_000_000).optional(),
});
export type ReplayRun = z.infer<typeof ReplayRun>;
export type ReplayRunInput = z.input<typeof ReplayRun>;

/** A call whose tool ran again. */
export const ReplayedCall = z.object({
  call: CallId,
  name: z.string(),
  outcome: ToolOutcome,
  /** Null: the tool did not run again, for the reason in `why`. */
  isSame: z.boolean().nullable(),
  why: z.string().optional(),
});
export type ReplayedCall = z.infer<typeof ReplayedCall>;

export const ReplayedStep = z.object({
  step: z.int().positive(),
  /** Only with live tools. */
  calls: z.array(ReplayedCall),
});
export type ReplayedStep = z.infer<typeof ReplayedStep>;

/** The first event of the loop that is not the recorded one. */
export const ReplayDifference = z.object({
  step: z.int().nonnegative(),
  /** The recorded event; null if the recording has no more events there. */
  seq: z.int().positive().nullable(),
  /** The recorded and the new event, or only the fields that differ, shortened. */
  recorded: z.string().nullable(),
  replayed: z.string(),
  fields: z.array(z.string()),
});
export type ReplayDifference = z.infer<typeof ReplayDifference>;

/** A call whose tool gave another result. */
export const ReplayDrift = z.object({
  step: z.int().positive(),
  call: CallId,
  name: z.string(),
  /** The start of the arguments, as JSON. */
  arguments: z.string(),
  recorded: z.object({ outcome: ToolOutcome, files: z.array(z.string()) }),
  live: z.object({ outcome: ToolOutcome, files: z.array(z.string()) }),
  /** The lines that differ, as in a unified diff, shortened. Empty if the texts are the same. */
  diff: z.string(),
});
export type ReplayDrift = z.infer<typeof ReplayDrift>;

export const ReplayResult = z.object({
  run: RunId,
  tools: z.enum(["recorded", "live"]),
  steps: z.int().nonnegative(),
  events: z.int().nonnegative(),
  /** Whether every event and every result was the same. */
  isSame: z.boolean(),
  difference: ReplayDifference.nullable(),
  /** The calls of the first step with other results. */
  drift: z.array(ReplayDrift),
  /** What could not be compared, and why. */
  notCompared: z.array(z.string()),
  /** The session with the files of the replay, if it was kept. */
  session: z.string().nullable(),
  /** The run that continues live. */
  fork: RunId.nullable(),
});
export type ReplayResult = z.infer<typeof ReplayResult>;

/** The progress of a replay, and its result at the end. */
export const ReplayEvent = z.union([
  z.object({ progress: z.string() }),
  z.object({ step: ReplayedStep }),
  z.object({ result: ReplayResult }),
]);
export type ReplayEvent = z.infer<typeof ReplayEvent>;
