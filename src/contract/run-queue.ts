import { z } from "zod";

/** Of a run that waits for a station to drive it: the higher, the sooner. */
export const Priority = z.int().min(-100).max(100);

/**
 * Who drives a run: the process that started or resumed it (a person's command, a program), a process in the background
 * that was started for it, or a station. When that process dies, a station goes on with the last two by itself, and
 * with the first one only when somebody says so: whoever held it at a terminal finds it as it was left.
 */
export const RunDriver = z.enum(["caller", "detached", "station"]);
export type RunDriver = z.infer<typeof RunDriver>;

/** Why a run stands in the queue. */
export const QueuedFor = z.enum(["start", "resume", "continue", "adoption", "retry"]);
export type QueuedFor = z.infer<typeof QueuedFor>;

/** Where what the model says is written to, or read from: absolute paths. */
export const TapePaths = z.object({ record: z.string().optional(), replay: z.string().optional() });

/** What a run in the queue waits for. */
export const WaitsFor = z.enum([
  /** Nothing: it is started at once. */
  "nothing",
  /** The time that it is to start at. */
  "time",
  /** Somebody who resumes it: it was paused. */
  "resume",
  /** The end of another run in the same session. */
  "session",
  /** The end of another run of the same owner. */
  "owner",
  /** The end of another run. */
  "runs",
  /** A sandbox less on the machine. */
  "sandboxes",
  /** Memory that other sandboxes asked for. */
  "memory",
  /** Those before it. */
  "turn",
  /** The next attempt: the last one failed. */
  "retry",
  /** The station ends, and starts nothing more. */
  "drain",
  /** A station: none runs here. */
  "station",
]);
export type WaitsFor = z.infer<typeof WaitsFor>;

/** A run's place in the queue. */
export const QueuePlace = z.object({
  /** 1: the next one. Null for one that cannot be started yet, whatever becomes of the others. */
  position: z.int().positive().nullable(),
  waitsFor: WaitsFor,
  /** The same in words. */
  why: z.string(),
  priority: Priority,
  startAt: z.iso.datetime().nullable(),
  /** Since when it waits. */
  since: z.iso.datetime(),
});
export type QueuePlace = z.infer<typeof QueuePlace>;

/** The queue of a station, in the order in which its runs are started. */
export const RunQueueView = z.object({
  runs: z.array(
    QueuePlace.extend({ run: z.string(), name: z.string().nullable(), owner: z.string(), agent: z.string(), title: z.string() }),
  ),
  /** How many there are; at most a thousand are shown. */
  total: z.int().nonnegative(),
  /** What the station drives, and the bounds; null where no station runs. */
  atWork: z
    .object({
      runs: z.int().nonnegative(),
      runsMax: z.int().positive(),
      runsPerOwnerMax: z.int().positive(),
      sandboxes: z.int().nonnegative(),
      sandboxesMax: z.int().positive(),
      /** What sandboxes asked for. */
      memoryBytes: z.int().nonnegative(),
      memoryBytesMax: z.int().positive(),
      draining: z.boolean(),
    })
    .nullable(),
});
export type RunQueueView = z.infer<typeof RunQueueView>;
