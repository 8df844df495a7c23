import { z } from "zod";
import { PATH_CHARACTERS_MAX } from "../bounded.ts";
import { concerns, defineEvent } from "../event/define-event.ts";
import { eventFamily, type NewEventOf } from "../event/event-family.ts";
import { RunId, SessionId } from "../ids.ts";
import { FinishReason } from "../outcome.ts";
import { SessionCleanup, SessionScope, WorkspaceSource } from "./session.ts";

/** The history of a session, in the stream `session/<id>`. It outlives the session. */

export const SessionCreated = defineEvent("session.created", 1, concerns("terminal"), {
  source: WorkspaceSource,
  scope: SessionScope,
  cleanup: SessionCleanup,
});
/** A git workspace was checked out at this commit. */
export const SessionPrepared = defineEvent("session.prepared", 1, concerns("terminal"), { commit: z.string() });
/** A git workspace was fetched and checked out again, at another commit. */
export const SessionRefreshed = defineEvent("session.refreshed", 1, concerns("terminal"), {
  before: z.string().max(64).nullable(),
  commit: z.string().max(64),
  /** Changed files and own commits that were discarded. */
  files: z.int().nonnegative(),
  commits: z.int().nonnegative(),
});
export const SessionRunStarted = defineEvent("session.run_started", 1, concerns("terminal"), { run: RunId });
export const SessionRunEnded = defineEvent("session.run_ended", 1, concerns("terminal"), { run: RunId, reason: FinishReason });
/** Changes were applied to one of the user's folders. `paths` may be truncated; `count` is complete. */
export const SessionApplied = defineEvent("session.applied", 1, concerns("terminal"), {
  folder: z.string().max(PATH_CHARACTERS_MAX),
  paths: z.array(z.string().max(PATH_CHARACTERS_MAX)).max(1000),
  count: z.int().nonnegative(),
});
export const SessionBranched = defineEvent("session.branched", 1, concerns("terminal"), {
  repository: z.string().max(PATH_CHARACTERS_MAX),
  branch: z.string().max(1000),
  commit: z.string().max(64),
});
/** The file changes of a run's turn were undone. `turnSeq` is the sequence of the event that began the turn. */
export const SessionUndone = defineEvent("session.undone", 1, concerns("terminal"), {
  run: RunId,
  turnSeq: z.int().positive(),
  /** Number of files that the undo changed. */
  count: z.int().nonnegative(),
});
/**
 * The session began with the files of another session: either after a step of a run there, or as they were at the time.
 */
export const SessionForked = defineEvent("session.forked", 1, concerns("terminal"), {
  from: SessionId,
  at: z.object({ run: RunId, step: z.int().nonnegative() }).nullable(),
});
/** The session has the merged changes of these sessions. */
export const SessionMerged = defineEvent("session.merged", 1, concerns("terminal"), {
  merge: z.string(),
  sessions: z.array(SessionId).max(100),
});
/** The lock was taken from its holder. */
export const SessionUnlocked = defineEvent("session.unlocked", 1, concerns("terminal"), { run: z.string(), forced: z.boolean() });
/** A run was started in it that changes when the session goes. */
export const SessionCleanupChanged = defineEvent("session.cleanup_changed", 1, concerns("terminal"), { cleanup: SessionCleanup });
export const SessionRemoved = defineEvent("session.removed", 1, concerns("terminal"), {
  why: z.enum(["discarded", "removed", "aged", "cleanup"]),
  /** For `cleanup`: how many files went that were not applied; absent if that was not known. */
  unapplied: z.int().nonnegative().optional(),
});

const all = [
  SessionCreated,
  SessionPrepared,
  SessionRefreshed,
  SessionRunStarted,
  SessionRunEnded,
  SessionApplied,
  SessionBranched,
  SessionUndone,
  SessionForked,
  SessionMerged,
  SessionUnlocked,
  SessionCleanupChanged,
  SessionRemoved,
] as const;
export const SessionEvent = z.discriminatedUnion("type", all);
export const sessionEvents = eventFamily(all);
export type SessionEvent = z.infer<typeof SessionEvent>;
export type NewSessionEvent = NewEventOf<SessionEvent>;
