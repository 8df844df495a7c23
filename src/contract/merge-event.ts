import { z } from "zod";
import { defineEvent } from "./define-event.ts";
import { drivenFamily } from "./driven-event.ts";
import type { NewEventOf } from "./event-family.ts";
import { RunId, SessionId } from "./run.ts";

/** What happens in a merge, in the stream `merge/<id>`, besides what all driven things have in common. */

const Step = z.int().positive();
const Attempt = z.int().positive();
const Path = z.string().min(1).max(4096);

/** What becomes of files that two sessions changed in ways that do not go together. */
export const ConflictPolicy = z.enum(["agent", "ask", "stop"]);
export type ConflictPolicy = z.infer<typeof ConflictPolicy>;

/** Git's mode of a file; null: it is not there. */
const GitMode = z.enum(["100644", "100755", "120000"]).nullable();

export const ConflictedFile = z.object({
  path: Path,
  kind: z.enum(["content", "added_twice", "changed_and_removed", "not_text", "renamed"]),
  /** What it was to begin with, what was merged so far has, and what the session that is merged has. */
  sides: z.object({ base: GitMode, merged: GitMode, theirs: GitMode }),
});
export type ConflictedFile = z.infer<typeof ConflictedFile>;

export const MergeBegun = defineEvent("merge.begun", 1, {
  sessions: z.array(SessionId).min(2).max(16),
  conflicts: ConflictPolicy,
  agent: z.string(),
  model: z.string().nullable(),
  /** What the session with the result is to be called. */
  name: z.string().nullable(),
});
export const MergePlanStarted = defineEvent("merge.plan_started", 1, {});
/** In which order; the digests say what each session had changed, and hold for the whole merge. */
export const MergePlanned = defineEvent("merge.planned", 1, {
  order: z.array(SessionId).min(2).max(16),
  digests: z.record(SessionId, z.string()),
  /** Of every two sessions, in how many files they conflict, where they do. */
  clashes: z.array(z.object({ sessions: z.tuple([SessionId, SessionId]), files: z.int().positive() })).max(120),
});
/** The next sessions are merged into the files of `from`, until there is a conflict. */
export const MergeStepStarted = defineEvent("merge.step_started", 1, { step: Step, from: SessionId });
export const MergeStepEnded = defineEvent("merge.step_ended", 1, {
  step: Step,
  /** The session with what came of it. */
  session: SessionId,
  merged: z.array(SessionId).max(16),
  conflict: z.object({ with: SessionId, files: z.array(ConflictedFile).min(1).max(500) }).nullable(),
});
/** Somebody gets a session in which the conflict is to be resolved. */
export const MergeOfferStarted = defineEvent("merge.offer_started", 1, { step: Step, attempt: Attempt, to: z.enum(["agent", "person"]) });
export const MergeOffered = defineEvent("merge.offered", 1, { step: Step, attempt: Attempt, session: SessionId, run: RunId.nullable() });
/** A person says that it is resolved, which side is to be taken of some files, or that an agent shall do it. */
export const MergeAnswered = defineEvent("merge.answered", 1, {
  by: z.string().max(200),
  take: z.array(z.object({ path: Path, side: z.enum(["merged", "theirs"]) })).max(500),
  agent: z.boolean(),
});
/** Whether what was made of it is a resolution. */
export const MergeChecked = defineEvent("merge.checked", 1, {
  step: Step,
  attempt: Attempt,
  ok: z.boolean(),
  why: z.string().max(2000).nullable(),
  /** Another attempt of an agent would end the same. */
  hopeless: z.boolean(),
});
export const MergePublishStarted = defineEvent("merge.publish_started", 1, { from: SessionId });
export const MergePublished = defineEvent("merge.published", 1, { session: SessionId });
export const MergeFailed = defineEvent("merge.failed", 1, { code: z.string(), text: z.string().max(2000) });
export const MergeCleanUpStarted = defineEvent("merge.cleanup_started", 1, {});
export const MergeCleanedUp = defineEvent("merge.cleaned_up", 1, { left: z.array(SessionId).max(1000) });

const all = [
  MergeBegun,
  MergePlanStarted,
  MergePlanned,
  MergeStepStarted,
  MergeStepEnded,
  MergeOfferStarted,
  MergeOffered,
  MergeAnswered,
  MergeChecked,
  MergePublishStarted,
  MergePublished,
  MergeFailed,
  MergeCleanUpStarted,
  MergeCleanedUp,
] as const;
export const MergeEvent = z.discriminatedUnion("type", all);
export type MergeEvent = z.infer<typeof MergeEvent>;
export type NewMergeEvent = NewEventOf<MergeEvent>;
export const mergeEvents = drivenFamily(all);
