import type {
  AppliedSession,
  ApplySession,
  BranchedSession,
  BranchSession,
  CleanedSessions,
  CleanUpSessions,
  SessionDiff,
  SessionView,
} from "../../contract/session-verbs.ts";

/** What can be done with sessions. `name` is a session's id or that of a run in it; all throw `not_found`. */
export interface SessionVerbs {
  get(name: string): Promise<SessionView>;
  list(): Promise<SessionView[]>;
  /** What changed in the workspace since the session began; `paths` are files or folders. */
  diff(name: string, options?: { paths?: readonly string[]; signal?: AbortSignal }): Promise<SessionDiff>;
  /** The same as a patch, in pieces. */
  patch(name: string, options?: { paths?: readonly string[]; signal?: AbortSignal }): AsyncIterable<Uint8Array>;
  /** Brings the changes to the user's folder. Throws `conflict`, `unsafe`, `invalid`, `denied`, `no_space`. */
  apply(name: string, options?: ApplySession): Promise<AppliedSession>;
  /** Makes a commit of the changes on a new branch of the user's repository. */
  branch(name: string, options?: BranchSession): Promise<BranchedSession>;
  /** Removes the session and what was changed in it. Throws `conflict` for one in use unless `force`. */
  discard(name: string, options?: { force?: boolean }): Promise<void>;
  /** Takes a lock away from a holder that died; with `force`, from any. */
  unlock(name: string, options?: { force?: boolean }): Promise<void>;
  /** Removes sessions that nobody used for a while, and those that should have gone with their run. */
  cleanup(options: CleanUpSessions): Promise<CleanedSessions>;
}
