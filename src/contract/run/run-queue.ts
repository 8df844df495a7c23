import { z } from "zod";

/** The priority of a waiting run: higher runs first. */
export const Priority = z.int().min(-100).max(100);

/**
 * The driver of a run: the process that started or resumed it (a user's command or a program), a background process
 * started for it, or a station. If the process dies, a station continues the last two automatically, and the first one
 * only on request, so that the user at a terminal finds the run unchanged.
 */
export const RunDriver = z.enum(["caller", "detached", "station"]);
export type RunDriver = z.infer<typeof RunDriver>;

/** Why a run is in the queue. */
export const QueuedFor = z.enum(["start", "resume", "continue", "adoption", "retry"]);
export type QueuedFor = z.infer<typeof QueuedFor>;

/** Absolute paths for recording or replaying the model's output. */
export const TapePaths = z.object({ record: z.string().optional(), replay: z.string().optional() });

/** What a queued run waits for. */
export const WaitsFor = z.enum([
  /** Nothing: it starts immediately. */
  "nothing",
  /** Its start time. */
  "time",
  /** A resume: it was paused. */
  "resume",
  /** The end of another run in the same session. */
  "session",
  /** The end of another run of the same owner. */
  "owner",
  /** The end of another run. */
  "runs",
  /** A free place among the sandboxes of the machine. */
  "sandboxes",
  /** Memory that other sandboxes have requested. */
  "memory",
  /** Runs ahead of it. */
  "turn",
  /** The next attempt: the last one failed. */
  "retry",
  /** The station is shutting down and starts no more runs. */
  "drain",
  /** A station: none is running here. */
  "station",
]);
export type WaitsFor = z.infer<typeof WaitsFor>;

/** A run's place in the queue. */
export const QueuePlace = z.object({
  /** 1 for the next run. Null if it cannot start yet, regardless of the others. */
  position: z.int().positive().nullable(),
  waitsFor: WaitsFor,
  /** `waitsFor` in words. */
  why: z.string(),
  priority: Priority,
  startAt: z.iso.datetime().nullable(),
  /** When it began to wait. */
  since: z.iso.datetime(),
});
export type QueuePlace = z.infer<typeof QueuePlace>;

/** A station's queue, in the order in which runs start. */
export const RunQueueView = z.object({
  runs: z.array(
    QueuePlace.extend({ run: z.string(), name: z.string().nullable(), owner: z.string(), agent: z.string(), title: z.string() }),
  ),
  /** Total number of runs; at most a thousand are listed. */
  total: z.int().nonnegative(),
  /** The station's current load and limits; null if no station is running. */
  atWork: z
    .object({
      runs: z.int().nonnegative(),
      runsMax: z.int().positive(),
      runsPerOwnerMax: z.int().positive(),
      sandboxes: z.int().nonnegative(),
      sandboxesMax: z.int().positive(),
      /** Memory that sandboxes have requested. */
      memoryBytes: z.int().nonnegative(),
      memoryBytesMax: z.int().positive(),
      draining: z.boolean(),
    })
    .nullable(),
});
export type RunQueueView = z.infer<typeof RunQueueView>;
