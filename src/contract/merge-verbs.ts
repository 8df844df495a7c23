import { z } from "zod";
import { DrivenView } from "./driven.ts";
import { ChosenName } from "./ids.ts";
import { ConflictedFile, ConflictPolicy, MergeAnswered } from "./merge-event.ts";
import { RunId, SessionId } from "./run.ts";

/** Arguments and answers of the station's verbs about merges. */

export const MERGED_SESSIONS_MAX = 16;

export const StartMerge = z.strictObject({
  /** Sessions, or runs in them, that began at the same place. */
  sessions: z.array(z.string().min(1).max(256)).min(2, "a merge is of two sessions or more").max(MERGED_SESSIONS_MAX),
  conflicts: ConflictPolicy.default("ask"),
  /** Who resolves conflicts, and with which model; absent: the station's default, or the agent's own. */
  agent: z.string().min(1).max(256).default("merger"),
  model: z.string().min(1).max(256).optional(),
  /** What the session with the result is to be called; absent: it has an id alone. */
  name: ChosenName.optional(),
});
export type StartMerge = z.input<typeof StartMerge>;

export const ResolveMerge = z.strictObject({
  /** Files of which one side is taken as it is: what was merged before, or what the session that is merged now has. */
  take: MergeAnswered.shape.data.shape.take.default([]),
  /** Let the agent resolve it after all. */
  agent: z.boolean().default(false),
});
export type ResolveMerge = z.input<typeof ResolveMerge>;

/** A merge as it is shown, with all that is known of it. */
export const MergeView = DrivenView.extend({
  sessions: z.array(SessionId),
  conflicts: ConflictPolicy,
  /** In which they are merged; null until that is known. */
  order: z.array(SessionId).nullable(),
  /** Those that are in. */
  merged: z.array(SessionId),
  /** What has to be resolved before it goes on. */
  conflict: z
    .object({
      with: SessionId,
      files: z.array(ConflictedFile),
      /** Where it is to be resolved, and by which run; null before somebody has it. */
      session: SessionId.nullable(),
      run: RunId.nullable(),
      attempt: z.int().nonnegative(),
      /** Why the last resolution was none. */
      why: z.string().nullable(),
    })
    .nullable(),
  /** The session with everything that was merged. */
  result: SessionId.nullable(),
});
export type MergeView = z.infer<typeof MergeView>;
