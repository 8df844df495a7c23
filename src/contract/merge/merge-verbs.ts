import { z } from "zod";
import { JobView } from "../durable/durable-job.ts";
import { ChosenName, RunId, SessionId } from "../ids.ts";
import { ConflictedFile, ConflictPolicy, MergeAnswered } from "./merge-event.ts";

/** Arguments and answers of the station's verbs for merges. */

export const MERGED_SESSIONS_MAX = 16;

export const StartMerge = z.strictObject({
  /** Sessions, or runs in them, with a common base. */
  sessions: z.array(z.string().min(1).max(256)).min(2, "must name at least two sessions").max(MERGED_SESSIONS_MAX),
  conflicts: ConflictPolicy.default("ask"),
  /** The agent and model that resolve conflicts. Default: the station's agent and the agent's own model. */
  agent: z.string().min(1).max(256).default("merger"),
  model: z.string().min(1).max(256).optional(),
  /** The name of the result session. Absent: it has only an id. */
  name: ChosenName.optional(),
});
export type StartMerge = z.input<typeof StartMerge>;

export const ResolveMerge = z.strictObject({
  /** Files to take completely from one side: the merge so far, or the session being merged. */
  take: MergeAnswered.shape.data.shape.take.default([]),
  /** Let the agent resolve the conflict after all. */
  agent: z.boolean().default(false),
});
export type ResolveMerge = z.input<typeof ResolveMerge>;

/** A merge with all its details. */
export const MergeView = JobView.extend({
  sessions: z.array(SessionId),
  conflicts: ConflictPolicy,
  /** The order of merging; null until it is planned. */
  order: z.array(SessionId).nullable(),
  /** The sessions merged so far. */
  merged: z.array(SessionId),
  /** The conflict that must be resolved before the merge continues. */
  conflict: z
    .object({
      with: SessionId,
      files: z.array(ConflictedFile),
      /** The session and run for resolving it; null before it is offered. */
      session: SessionId.nullable(),
      run: RunId.nullable(),
      attempt: z.int().nonnegative(),
      /** Why the last resolution was rejected. */
      why: z.string().nullable(),
    })
    .nullable(),
  /** The session with the complete result. */
  result: SessionId.nullable(),
});
export type MergeView = z.infer<typeof MergeView>;
