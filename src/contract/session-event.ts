import { z } from "zod";
import { PATH_CHARACTERS_MAX } from "./bounded.ts";
import { defineEvent } from "./define-event.ts";
import { eventFamily, type NewEventOf } from "./event-family.ts";
import { FinishReason, RunId, SessionId } from "./run.ts";
import { SessionCleanup, SessionScope, WorkspaceSource } from "./session.ts";

/** The history of a session, in the stream `session/<id>`; it outlives the session. */

export const SessionCreated = defineEvent("session.created", 1, { source: WorkspaceSource, scope: SessionScope, cleanup: SessionCleanup });
/** A git workspace was checked out, at this commit. */
export const SessionPrepared = defineEvent("session.prepared", 1, { commit: z.string() });
export const SessionRunStarted = defineEvent("session.run_started", 1, { run: RunId });
export const SessionRunEnded = defineEvent("session.run_ended", 1, { run: RunId, reason: FinishReason });
/** Changes were brought to a folder of the user's. `paths` may be cut; `count` is not. */
export const SessionApplied = defineEvent("session.applied", 1, {
  folder: z.string().max(PATH_CHARACTERS_MAX),
  paths: z.array(z.string().max(PATH_CHARACTERS_MAX)).max(1000),
  count: z.int().nonnegative(),
});
export const SessionBranched = defineEvent("session.branched", 1, {
  repository: z.string().max(PATH_CHARACTERS_MAX),
  branch: z.string().max(1000),
  commit: z.string().max(64),
});
/** What a turn of a run changed in files was taken back. `turnSeq` is the number of the run's event that began it. */
export const SessionUndone = defineEvent("session.undone", 1, {
  run: RunId,
  turnSeq: z.int().positive(),
  /** Files that changed with it. */
  count: z.int().nonnegative(),
});
/** It began with the files of another session: as they were after a step of a run there, or as they were just then. */
export const SessionForked = defineEvent("session.forked", 1, {
  from: SessionId,
  at: z.object({ run: RunId, step: z.int().nonnegative() }).nullable(),
});
/** It has what these sessions had changed, merged. */
export const SessionMerged = defineEvent("session.merged", 1, { merge: z.string(), sessions: z.array(SessionId).max(100) });
/** Its lock was taken away from whoever held it. */
export const SessionUnlocked = defineEvent("session.unlocked", 1, { run: z.string(), forced: z.boolean() });
export const SessionRemoved = defineEvent("session.removed", 1, { why: z.enum(["discarded", "removed", "aged", "cleanup"]) });

const all = [
  SessionCreated,
  SessionPrepared,
  SessionRunStarted,
  SessionRunEnded,
  SessionApplied,
  SessionBranched,
  SessionUndone,
  SessionForked,
  SessionMerged,
  SessionUnlocked,
  SessionRemoved,
] as const;
export const SessionEvent = z.discriminatedUnion("type", all);
export const sessionEvents = eventFamily(all);
export type SessionEvent = z.infer<typeof SessionEvent>;
export type NewSessionEvent = NewEventOf<SessionEvent>;
