import { z } from "zod";
import { Output } from "../contract/api/exec.ts";
import { pageLimit } from "../contract/api/page-limit.ts";
import { SessionId } from "../contract/ids.ts";
import {
  AppliedSession,
  ApplySession,
  AskApplied,
  BranchedSession,
  BranchSession,
  CleanedSessions,
  CleanUpSessions,
  DiffFile,
  DiffIgnored,
  DiffLeftOut,
  type DiffPiece,
  DiscardSession,
  ForkSession,
  ListSessionFiles,
  ListSessions,
  NoteSession,
  ReadSessionFile,
  RefreshSession,
  RefreshStep,
  SessionApplies,
  SessionDetails,
  SessionDiff,
  SessionFiles,
  SessionList,
  SessionPoint,
  SessionView,
  Step,
  Unapplied,
  UndoneTurn,
  UndoTurns,
} from "../contract/session/session-verbs.ts";
import { type VerbsOf, verb, verbOfType } from "./verb.ts";

export interface DiffOptions {
  /** Files or folders. Default: everything. */
  paths?: string[] | undefined;
  /** Includes new files that the user's own `.gitignore` files name; otherwise they are only counted. */
  includeIgnored?: boolean | undefined;
  /** The number of steps of the named run, or of the session's last, after which to take the files; see `points`. */
  at?: number | undefined;
  /** Shows what changed since this step instead of since the session started. */
  since?: number | undefined;
  /** For a patch that is read, not applied: reports only that binary and large files differ. */
  brief?: boolean | undefined;
  signal?: AbortSignal;
}

const paths = z.array(z.string().min(1).max(4096)).max(1000).optional();
/** The number of steps of the named run, or of the session's last. */
const at = Step.optional();
const diffed = { paths, includeIgnored: z.boolean().optional(), at, since: at };

/** A piece of a diff, with its bytes encoded as text. */
export const SentDiffPiece = z.discriminatedUnion("kind", [
  DiffFile,
  z.object({ kind: z.literal("patch"), ...Output.shape }),
  DiffLeftOut,
  DiffIgnored,
]);

/** Enough for forty thousand files. */
const NOTE_BYTES_MAX = 16 * 1024 * 1024;

/**
 * Sessions. `name` is a session's name, or an id or name of a run in it (`RunVerbs`). All throw `not_found`. `diff`,
 * `patch`, `apply` and `branch` also take a sandbox.
 */
export const sessions = {
  get: verb({
    path: "GET /v1/sessions/{session}",
    gives: SessionDetails,
    scope: "read",
    owned: "session",
    summary: "Get one session, with its history.",
  }),
  /** Lists sessions, last used first, without those with a damaged record. Throws `invalid` for a malformed cursor. */
  list: verb({
    path: "GET /v1/sessions",
    takes: ListSessions.extend({ limit: pageLimit }),
    gives: SessionList,
    scope: "read",
    owned: "by hand",
    summary: "List sessions, last used first.",
  }),
  /** Lists what changed in the workspace since the session started. Throws `too_large` above a limit, `cancelled`. */
  diff: verb({
    path: "GET /v1/sessions/{session}/diff",
    takes: z.strictObject(diffed),
    signal: true,
    gives: SessionDiff,
    scope: "read",
    owned: "work",
    summary: "List the files that a session's runs changed.",
  }),
  /** Estimates how much has changed. Cheap enough for lists. */
  unapplied: verb({
    path: "GET /v1/sessions/{session}/unapplied",
    gives: Unapplied,
    scope: "read",
    owned: "session",
    summary: "Estimate how much a session's runs changed. Cheap.",
  }),
  /** Yields the changes themselves, piece by piece, in bounded memory. */
  patch: verbOfType<(name: string, options?: DiffOptions) => AsyncIterable<DiffPiece>>()({
    path: "GET /v1/sessions/{session}/patch",
    query: z.strictObject({ ...diffed, brief: z.boolean().optional() }),
    answer: { bytes: "text/x-diff", events: SentDiffPiece },
    kind: "stream",
    scope: "read",
    owned: "work",
    summary: "Get the changes as a git patch, or as events with details of each file and what was left out.",
  }),
  /**
   * Returns the changes as an archive (`changes-manifest.ts`). `base` includes the original contents. Throws what
   * `diff` throws.
   */
  changes: verb({
    path: "GET /v1/sessions/{session}/changes",
    takes: z.strictObject({ ...diffed, base: z.boolean().optional() }),
    signal: true,
    kind: "bytes",
    media: "application/x-tar",
    scope: "read",
    owned: "work",
    summary:
      "Get the changes as a tar archive for a client that has the original folder: a manifest with digests, then each content once. `base` includes the original contents.",
  }),
  /** Records what a client did with the changes. */
  note: verb({
    path: "POST /v1/sessions/{session}/notes",
    takes: NoteSession,
    bodyBytesMax: NOTE_BYTES_MAX,
    scope: "run",
    owned: "work",
    summary: "Record what a client did with the changes: applied them to a folder, or committed them on a branch.",
  }),
  /** Applies the changes to the user's folder. Throws `conflict`, `unsafe`, `invalid`, `denied`, `no_space`. */
  apply: verb({
    path: "POST /v1/sessions/{session}/apply",
    takes: ApplySession,
    bodyOptional: true,
    gives: AppliedSession,
    scope: "admin",
    owned: "work",
    summary: "Apply a session's changes to a folder on the station's machine.",
  }),
  /** Lists the latest applies, newest first, with the diff of the named or latest one. Throws `not_found`. */
  applied: verb({
    path: "GET /v1/sessions/{session}/applied",
    takes: AskApplied,
    gives: SessionApplies,
    scope: "read",
    owned: "work",
    summary: "List the latest applies of a session with their times, and the diff of one of them.",
  }),
  /**
   * Reverts the file changes of a run's last turn. Each further call reverts the turn before; `to` reverts every turn
   * since a step. Changes that were already applied stay applied, and the agent learns of the undo when it continues.
   * Throws `conflict` while the session is in use or if another run has used it since, `not_found` if there is no turn
   * left, `unsupported` for a turn before which the files were not stored.
   */
  undo: verb({
    path: "POST /v1/runs/{run}/undo",
    takes: UndoTurns,
    bodyOptional: true,
    gives: UndoneTurn,
    scope: "run",
    owned: "run",
    summary: "Undo the file changes of a run's last turn, or of every turn since a step. Applied changes stay applied.",
  }),
  /** Lists the steps after which the session's files are stored, oldest first. */
  points: verb({
    path: "GET /v1/sessions/{session}/points",
    gives: z.array(SessionPoint),
    key: "points",
    scope: "read",
    owned: "session",
    summary: "List the steps after which a session's files are stored.",
  }),
  /**
   * Lists a workspace folder in its current state or after a step, without files that runs do not see. Throws
   * `not_found`, `unsupported` for a step after which files were not stored, `too_large`.
   */
  files: verb({
    path: "GET /v1/sessions/{session}/files",
    takes: ListSessionFiles,
    gives: SessionFiles,
    scope: "read",
    owned: "session",
    summary: "List a folder of a session's workspace, in its current state or after a step.",
  }),
  /** Throws what `files` throws, and `unsupported` for a path that is not a file. */
  readFile: verb({
    path: "GET /v1/sessions/{session}/files/content",
    takes: ReadSessionFile,
    kind: "bytes",
    scope: "read",
    owned: "session",
    summary: "Read a file of a session's workspace, in its current state or after a step.",
  }),
  /**
   * Creates an independent session that starts with the current files of this one, or with its files after a step of a
   * run. Throws `conflict` if this one is in use and its current files are requested, `exists` for a name that is
   * taken, `unsupported` for a step after which files were not stored, `too_large`, `no_space`.
   */
  fork: verb({
    path: "POST /v1/sessions/{session}/fork",
    takes: ForkSession,
    bodyOptional: true,
    owner: true,
    apart: true,
    gives: SessionView,
    status: 201,
    scope: "run",
    owned: "by hand",
    summary: "Create a session from this one's files, in their current state or after a step.",
  }),
  /**
   * Fetches the repository of a git session and checks it out again: progress line by line, then the result. Everything
   * of the former check out goes. If this is interrupted, the next run checks out first. Throws `conflict` while the
   * session is in use, or if it has changes, ignored files or own commits and `discard` is not set; `unsupported` for a
   * session without a repository; `not_found` for an unknown ref; and what the first check out throws.
   */
  refresh: verb({
    path: "POST /v1/sessions/{session}/refresh",
    takes: RefreshSession,
    bodyOptional: true,
    gives: RefreshStep,
    kind: "items",
    scope: "run",
    owned: "session",
    summary: "Fetch a session's repository and check it out again: progress line by line, then the result.",
  }),
  /** Commits the changes on a new branch of the user's repository. */
  branch: verb({
    path: "POST /v1/sessions/{session}/branch",
    takes: BranchSession,
    bodyOptional: true,
    gives: BranchedSession,
    scope: "admin",
    owned: "work",
    summary: "Commit a session's changes on a new branch of a repository on the station's machine.",
  }),
  /** Removes the session with its files; its history stays. Throws `conflict` for a session in use unless `force`. */
  discard: verb({
    path: "DELETE /v1/sessions/{session}",
    takes: DiscardSession,
    gives: SessionId,
    key: "session",
    scope: "run",
    owned: "session",
    summary: "Remove a session with everything it stores.",
  }),
  /** Removes the lock of a dead holder, or with `force` of any holder. Resolves with the session's id. */
  unlock: verb({
    path: "POST /v1/sessions/{session}/unlock",
    takes: z.strictObject({ force: z.boolean().default(false) }),
    bodyOptional: true,
    gives: SessionId,
    key: "session",
    scope: "run",
    owned: "session",
    summary: "Remove a session's lock if its holder died, or with `force` in any case.",
  }),
  /** Removes sessions that have not been used for a while, and those that should have been removed with their run. */
  cleanup: verb({
    path: "POST /v1/sessions/cleanup",
    takes: CleanUpSessions,
    gives: CleanedSessions,
    scope: "run",
    owned: "by hand",
    summary: "Remove sessions that have not been used for a while, and those that should have been removed with their run.",
  }),
};

export type SessionVerbs = VerbsOf<typeof sessions>;
