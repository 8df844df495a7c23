import { z } from "zod";
import { RunId } from "../ids.ts";

/** One step of a run: what the agent said and did, and what changed. */
export const TimelineStep = z.object({
  step: z.int().positive(),
  at: z.iso.datetime(),
  /** Whether the step was taken in another run, from which this one was forked. */
  isInherited: z.boolean(),
  /** The beginning of the answer. */
  text: z.string().max(200),
  /** The names of the tools that it called. */
  tools: z.array(z.string()).max(100),
  /** The files that changed, and the bytes that storing them took; null if that is unknown. */
  files: z.int().nonnegative().nullable(),
  bytes: z.int().nonnegative().nullable(),
  costUsd: z.number().nullable(),
  /** Whether the files after the step are stored. */
  isStored: z.boolean(),
});
export type TimelineStep = z.infer<typeof TimelineStep>;

/** A fork of a run, or of one of its forks. */
export const TimelineFork = z.object({
  run: RunId,
  name: z.string().nullable(),
  /** The run and step after which it was forked. */
  from: z.object({ run: RunId, step: z.int().nonnegative() }),
  /** Whether it preserves what a rewind took back. The run that was rewound counts the cost of that. */
  isTail: z.boolean(),
  model: z.string(),
  status: z.string(),
  finish: z.string().nullable(),
  steps: z.int().nonnegative(),
  /** What it spent itself; null if a price is unknown. */
  costUsd: z.number().nullable(),
  createdAt: z.iso.datetime(),
});
export type TimelineFork = z.infer<typeof TimelineFork>;

/** A run that shares its first steps with another; `from` is null for one that is not a fork. */
export const TimelineRelative = TimelineFork.extend({ from: TimelineFork.shape.from.nullable() });
export type TimelineRelative = z.infer<typeof TimelineRelative>;

/** A run as a timeline: its steps without those that were rewound, and its forks. */
export const RunTimeline = z.object({
  run: RunId,
  /** The run and step after which it was forked; null if it was not. */
  from: z.object({ run: RunId, step: z.int().nonnegative() }).nullable(),
  steps: z.array(TimelineStep),
  /** Oldest first. */
  forks: z.array(TimelineFork),
  /** The run that it comes from, through all forks, and the other forks of that; oldest first. */
  relatives: z.array(TimelineRelative),
});
export type RunTimeline = z.infer<typeof RunTimeline>;
