import { z } from "zod";
import { jobFamily } from "../durable/durable-event.ts";
import { concerns, defineEvent } from "../event/define-event.ts";
import type { NewEventOf } from "../event/event-family.ts";
import { RunId, SessionId } from "../ids.ts";

/** The events of a merge, in the stream `merge/<id>`, in addition to those of all durable jobs. */

const Step = z.int().positive();
const Attempt = z.int().positive();
const Path = z.string().min(1).max(4096);

/** What happens to files with conflicting changes in two sessions. */
export const ConflictPolicy = z.enum(["agent", "ask", "stop"]);
export type ConflictPolicy = z.infer<typeof ConflictPolicy>;

/** Git's file mode; null if the file does not exist. */
const GitMode = z.enum(["100644", "100755", "120000"]).nullable();

export const ConflictedFile = z.object({
  path: Path,
  kind: z.enum(["content", "added_twice", "changed_and_removed", "not_text", "renamed"]),
  /** The modes in the common base, in the merge so far, and in the session being merged. */
  sides: z.object({ base: GitMode, merged: GitMode, theirs: GitMode }),
});
export type ConflictedFile = z.infer<typeof ConflictedFile>;

export const MergeBegun = defineEvent("merge.begun", 1, concerns("state"), {
  sessions: z.array(SessionId).min(2).max(16),
  conflicts: ConflictPolicy,
  agent: z.string(),
  model: z.string().nullable(),
  /** The name of the result session. */
  name: z.string().nullable(),
});
export const MergePlanStarted = defineEvent("merge.plan_started", 1, concerns("state"), {});
/** The order of the sessions. The digests record each session's changes and apply to the whole merge. */
export const MergePlanned = defineEvent("merge.planned", 1, concerns("state", "terminal"), {
  order: z.array(SessionId).min(2).max(16),
  digests: z.record(SessionId, z.string()),
  /** For each conflicting pair of sessions, the number of files in conflict. */
  clashes: z.array(z.object({ sessions: z.tuple([SessionId, SessionId]), files: z.int().positive() })).max(120),
});
/** Merges the next sessions into the files of `from`, up to a conflict. */
export const MergeStepStarted = defineEvent("merge.step_started", 1, concerns("state"), { step: Step, from: SessionId });
export const MergeStepEnded = defineEvent("merge.step_ended", 1, concerns("state", "terminal"), {
  step: Step,
  /** The session with the result of the step. */
  session: SessionId,
  merged: z.array(SessionId).max(16),
  conflict: z.object({ with: SessionId, files: z.array(ConflictedFile).min(1).max(500) }).nullable(),
});
/** Offers a session to an agent or a person to resolve the conflict in. */
export const MergeOfferStarted = defineEvent("merge.offer_started", 1, concerns("state"), {
  step: Step,
  attempt: Attempt,
  to: z.enum(["agent", "person"]),
});
export const MergeOffered = defineEvent("merge.offered", 1, concerns("state", "terminal"), {
  step: Step,
  attempt: Attempt,
  session: SessionId,
  run: RunId.nullable(),
});
/** A person reports that the conflict is resolved, chooses a side for some files, or hands it to an agent. */
export const MergeAnswered = defineEvent("merge.answered", 1, concerns("state"), {
  by: z.string().max(200),
  take: z.array(z.object({ path: Path, side: z.enum(["merged", "theirs"]) })).max(500),
  agent: z.boolean(),
});
/** Whether the offered session contains a valid resolution. */
export const MergeChecked = defineEvent("merge.checked", 1, concerns("state", "terminal"), {
  step: Step,
  attempt: Attempt,
  ok: z.boolean(),
  why: z.string().max(2000).nullable(),
  /** Whether another attempt by an agent would fail the same way. */
  hopeless: z.boolean(),
});
export const MergePublishStarted = defineEvent("merge.publish_started", 1, concerns("state"), { from: SessionId });
export const MergePublished = defineEvent("merge.published", 1, concerns("state"), { session: SessionId });
export const MergeFailed = defineEvent("merge.failed", 1, concerns("state"), { code: z.string(), text: z.string().max(2000) });
export const MergeCleanUpStarted = defineEvent("merge.cleanup_started", 1, concerns("state"), {});
export const MergeCleanedUp = defineEvent("merge.cleaned_up", 1, concerns("state"), { left: z.array(SessionId).max(1000) });

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
export const mergeEvents = jobFamily(all);
