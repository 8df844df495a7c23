import type {
  AppliedSession,
  ApplySession,
  AskApplied,
  BranchedSession,
  BranchSession,
  CleanedSessions,
  CleanUpSessions,
  DiffPiece,
  DiscardSession,
  ForkSession,
  ListSessionFiles,
  ListSessions,
  NoteSession,
  ReadSessionFile,
  SessionApplies,
  SessionDetails,
  SessionDiff,
  SessionFiles,
  SessionList,
  SessionPoint,
  SessionView,
  Unapplied,
  UndoneTurn,
  UndoTurns,
} from "../../contract/session-verbs.ts";

export interface DiffOptions {
  /** Files or folders; absent: everything. */
  paths?: readonly string[];
  /** Also new files that the user's own `.gitignore` files name; otherwise they are counted. */
  includeIgnored?: boolean;
  /** As it was after so many steps of the run that is named, or of the session's last; see `points`. */
  at?: number;
  /** Of a patch that somebody reads and nobody applies: of binary and of big files only that they differ. */
  brief?: boolean;
  signal?: AbortSignal;
}

/**
 * What can be done with sessions. `name` is a session's name, or a run in it by whatever stands for that (`RunVerbs`);
 * all throw `not_found`. `diff`, `patch`, `apply` and `branch` take a sandbox as well.
 */
export interface SessionVerbs {
  get(name: string): Promise<SessionDetails>;
  /** The last used first. One whose record is damaged is not shown. Throws `invalid` for a cursor that is none. */
  list(options?: ListSessions): Promise<SessionList>;
  /** What changed in the workspace since the session began. Throws `too_large` past a bound, `cancelled`. */
  diff(name: string, options?: DiffOptions): Promise<SessionDiff>;
  /** Roughly how much of that there is, at the price of a look: for lists. */
  unapplied(name: string): Promise<Unapplied>;
  /** The same with the changes themselves, piece by piece: what was taken need not be kept. */
  patch(name: string, options?: DiffOptions): AsyncIterable<DiffPiece>;
  /**
   * The changes as an archive (`changes-manifest.ts`), for whoever has the folder they belong to. `base`: with the
   * contents from before, too. Throws as `diff`.
   */
  changes(name: string, options?: Omit<DiffOptions, "brief"> & { base?: boolean }): AsyncIterable<Uint8Array>;
  /** What was done with them there. */
  note(name: string, note: NoteSession): Promise<void>;
  /** Brings the changes to the user's folder. Throws `conflict`, `unsafe`, `invalid`, `denied`, `no_space`. */
  apply(name: string, options?: ApplySession): Promise<AppliedSession>;
  /**
   * What the last applies brought where, the latest first, and what that was: of the one that is asked for, or of the
   * last. Throws `not_found` for one that is not kept.
   */
  applied(name: string, options?: AskApplied): Promise<SessionApplies>;
  /**
   * Takes back what the last turn of a run changed in files, and with each further call what the turn before did, or
   * with `to` every turn since a step at once; what was applied stays applied, and the agent is told when it goes on.
   * Throws `conflict` while somebody works in the session or when another run has since, `not_found` when there is no
   * turn left, `unsupported` for one before which the files were not kept.
   */
  undo(run: string, options?: UndoTurns): Promise<UndoneTurn>;
  /** Where its files can be had as they were, oldest first. */
  points(name: string): Promise<SessionPoint[]>;
  /**
   * What is in a folder of its workspace, and a file of it: as they are, or as they were after a step. What its runs do
   * not see of the user's folder is not there. Throws `not_found`, `unsupported` for a step after which they were not
   * kept and for what is no file, `too_large`.
   */
  files(name: string, options?: ListSessionFiles): Promise<SessionFiles>;
  readFile(name: string, options: ReadSessionFile): AsyncIterable<Uint8Array>;
  /**
   * A new session that begins with the files of this one: as they are, or as they were after a step of a run. The two
   * have nothing in common from then on. Throws `conflict` while somebody works in this one and its files as they are
   * are asked for, `exists` for a name that is taken, `unsupported` for a step after which they were not kept,
   * `too_large`, `no_space`.
   */
  fork(name: string, options?: ForkSession, about?: { owner?: string }): Promise<SessionView>;
  /** Makes a commit of the changes on a new branch of the user's repository. */
  branch(name: string, options?: BranchSession): Promise<BranchedSession>;
  /**
   * Removes the session with everything it kept; its history stays. Throws `conflict` for one in use unless `force`.
   * Resolves with its id.
   */
  discard(name: string, options?: DiscardSession): Promise<string>;
  /** Takes a lock away from a holder that died; with `force`, from any. Resolves with the session's id. */
  unlock(name: string, options?: { force?: boolean }): Promise<string>;
  /** Removes sessions that nobody used for a while, and those that should have gone with their run. */
  cleanup(options: CleanUpSessions): Promise<CleanedSessions>;
}
