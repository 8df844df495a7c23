import { z } from "zod";
import { LongText, PATH_CHARACTERS_MAX, PathText } from "../bounded.ts";
import { ChosenName, RuntimeName, SessionId } from "../ids.ts";
import { created, next, owned, paged } from "../label/list-filter.ts";
import { Session, SessionLock, SessionScope } from "./session.ts";
import { SessionApplied, SessionBranched, SessionEvent } from "./session-event.ts";

/**
 * Arguments and answers of the station's verbs for sessions. A session is identified by its own id or by that of a run
 * in it.
 */

/** A session for display, without passwords in addresses. */
export const SessionView = Session.extend({ lock: SessionLock.nullable() });
export type SessionView = z.infer<typeof SessionView>;

/** Filters sessions. Absent members do not filter. */
export const ListSessions = z.strictObject({
  id: z.array(SessionId).max(1000).optional(),
  runtime: RuntimeName.optional(),
  scope: SessionScope.optional(),
  ...owned,
  ...created,
  usedAfter: created.createdAfter,
  usedBefore: created.createdBefore,
  ...paged,
});
export type ListSessions = z.input<typeof ListSessions>;

/** A session with an unusable record, and why. */
export const DamagedSession = z.object({ id: z.string(), reason: z.string() });
export type DamagedSession = z.infer<typeof DamagedSession>;

/** Last used first. The first page also has the sessions with an unusable record. */
export const SessionList = z.object({ sessions: z.array(SessionView), damaged: z.array(DamagedSession), ...next });
export type SessionList = z.infer<typeof SessionList>;

export const SessionDetails = SessionView.extend({ history: z.array(SessionEvent) });
export type SessionDetails = z.infer<typeof SessionDetails>;

/** A difference that cannot be shown or applied, and why. */
export const LeftOut = z.object({ path: z.string(), reason: z.string() });
export type LeftOut = z.infer<typeof LeftOut>;

export const ChangedFile = z.object({
  path: z.string(),
  /** The old path of a renamed file. */
  from: z.string().nullable(),
  kind: z.enum(["added", "removed", "modified", "renamed"]),
  binary: z.boolean(),
  linesAdded: z.int().nonnegative(),
  linesRemoved: z.int().nonnegative(),
  /** The SHA-256 of the new content, to compare it with another session's; null for a removed file. */
  digest: z.string().nullable(),
  /** The user changed the file after the agent's copy was made, so applying would overwrite that change. */
  changedOutside: z.boolean(),
  /** Why the file is applied only if it is named, or null. */
  heldBack: z.string().nullable(),
});
export type ChangedFile = z.infer<typeof ChangedFile>;

export const DiffFile = z.object({
  kind: z.literal("file"),
  file: ChangedFile.omit({ binary: true, linesAdded: true, linesRemoved: true, digest: true }),
});
export const DiffLeftOut = z.object({ kind: z.literal("leftOut"), leftOut: LeftOut });
export const DiffIgnored = z.object({ kind: z.literal("ignored"), count: z.int().positive() });

/**
 * A piece of a diff: for each changed file its description, followed by its part of the patch in complete lines; at the
 * end, what was omitted.
 */
export const DiffPiece = z.discriminatedUnion("kind", [
  DiffFile,
  /** A patch in git's format. Bytes, since files need not be text. */
  z.object({ kind: z.literal("patch"), bytes: z.custom<Uint8Array>((value) => value instanceof Uint8Array) }),
  DiffLeftOut,
  DiffIgnored,
]);
export type DiffPiece = z.infer<typeof DiffPiece>;

/** Number of new files that were omitted because the user's own `.gitignore` files match them. */
const Ignored = z.int().nonnegative();

export const SessionDiff = z.object({ session: SessionId, files: z.array(ChangedFile), leftOut: z.array(LeftOut), ignored: Ignored });
export type SessionDiff = z.infer<typeof SessionDiff>;

/**
 * The number of a session's files that are not in the user's folder, as far as that is known without a sandbox; null if
 * it is unknown.
 */
export const Unapplied = z.object({ files: z.int().nonnegative().nullable(), isMinimum: z.boolean() });
export type Unapplied = z.infer<typeof Unapplied>;

export const ApplySession = z.strictObject({
  /** Absolute. Absent: the folder that the session began from. */
  folder: PathText.optional(),
  /** Files or folders; absent: everything. */
  paths: z.array(z.string().max(PATH_CHARACTERS_MAX)).max(10_000).optional(),
  /** Files or folders to omit. */
  leaveOut: z.array(z.string().max(PATH_CHARACTERS_MAX)).max(1000).default([]),
  /** Also apply files that outside tools act on, without naming them. */
  includeConfiguration: z.boolean().default(false),
  /** Also apply new files that the user's own `.gitignore` files match. A file named in `paths` is always included. */
  includeIgnored: z.boolean().default(false),
  /** Also overwrite files that the user changed after the agent's copy was made. */
  force: z.boolean().default(false),
});
export type ApplySession = z.input<typeof ApplySession>;

export const AppliedSession = z.object({
  session: SessionId,
  folder: z.string(),
  applied: z.array(z.string()),
  skipped: z.array(LeftOut),
  /** Files that were applied but need a second look. */
  told: z.array(LeftOut),
  leftOut: z.array(LeftOut),
  ignored: Ignored,
});
export type AppliedSession = z.infer<typeof AppliedSession>;

export const AskApplied = z.strictObject({
  /** The number of the apply; absent: the last. */
  apply: z.int().positive().optional(),
});
export type AskApplied = z.input<typeof AskApplied>;

/** The record of one apply of a session or sandbox. */
export const AppliedChanges = z.object({
  /** The number of the apply, which increases. */
  apply: z.int().positive(),
  at: z.string(),
  folder: z.string(),
  count: z.int().nonnegative(),
  hasDiff: z.boolean(),
});
export type AppliedChanges = z.infer<typeof AppliedChanges>;

export const AppliedFile = z.object({
  ...ChangedFile.pick({ path: true, from: true, kind: true, linesAdded: true, linesRemoved: true }).shape,
  /**
   * A patch in git's format; for binary and large files only the fact that they differ. Null if there was no room to
   * store it.
   */
  patch: z.object({ encoding: z.enum(["utf8", "base64"]), text: z.string() }).nullable(),
});
export type AppliedFile = z.infer<typeof AppliedFile>;

/** What an apply changed in the folder. `isWhole`: nothing was too large to store. */
export const AppliedDiff = z.object({ apply: z.int().positive(), files: z.array(AppliedFile), isWhole: z.boolean() });
export type AppliedDiff = z.infer<typeof AppliedDiff>;

/** The latest applies, newest first, with the diff of the requested one. */
export const SessionApplies = z.object({ session: SessionId, applies: z.array(AppliedChanges), diff: AppliedDiff.nullable() });
export type SessionApplies = z.infer<typeof SessionApplies>;

/** What a client with the folder did with the changes of a session or sandbox. */
export const NoteSession = z.strictObject({
  /** The git hashes of the applied files, by path; empty for an applied removal. */
  applied: z
    .record(z.string().min(1).max(4096), z.string().regex(/^(?:[0-9a-f]{40,64})?$/))
    .refine((files) => Object.keys(files).length <= 40_000, "has too many files")
    .meta({ maxProperties: 40_000 })
    .optional(),
  event: z
    .discriminatedUnion("type", [
      z.strictObject({ type: z.literal("session.applied"), data: SessionApplied.shape.data }),
      z.strictObject({ type: z.literal("session.branched"), data: SessionBranched.shape.data }),
    ])
    .optional(),
});
export type NoteSession = z.infer<typeof NoteSession>;

/** A number of steps that a run has taken. */
export const Step = z.int().nonnegative().max(1_000_000);

export const UndoTurns = z.strictObject({
  /** Undo all turns since the run had taken this many steps; absent: only the last turn. */
  to: Step.optional(),
});
export type UndoTurns = z.input<typeof UndoTurns>;

/** A point of a session: its files after this many steps of a run in it. */
export const SessionPoint = z.object({
  run: z.string(),
  step: z.int().nonnegative(),
  /** The turn that began with these files. Absent: a step in the middle of a turn. */
  turn: z.int().positive().optional(),
  at: z.iso.datetime(),
});
export type SessionPoint = z.infer<typeof SessionPoint>;

/** Creates a session with the files of another one. */
export const ForkSession = z.strictObject({
  /** Absent: the session has only an id. */
  name: ChosenName.optional(),
  /** Use the files after this many steps of the named run, or of the session's last run; absent: the current files. */
  at: Step.optional(),
});
export type ForkSession = z.input<typeof ForkSession>;

/** A path relative to the workspace. */
const WorkspacePath = z
  .string()
  .max(4000)
  .refine((path) => !path.startsWith("/"), "must be relative to the workspace")
  .refine((path) => !path.includes("\0"), "must not contain NUL")
  .refine((path) => !path.split("/").includes(".."), "must not contain ..");

export const ListSessionFiles = z.strictObject({ path: WorkspacePath.default(""), at: Step.optional() });
export type ListSessionFiles = z.input<typeof ListSessionFiles>;
export const ReadSessionFile = z.strictObject({ path: WorkspacePath.min(1), at: Step.optional() });
export type ReadSessionFile = z.input<typeof ReadSessionFile>;

/** The entries of one folder of a session's workspace. */
export const SessionFiles = z.object({
  session: SessionId,
  path: z.string(),
  entries: z.array(
    z.object({
      name: z.string(),
      kind: z.enum(["file", "directory", "link", "fifo", "socket", "device"]),
      sizeBytes: z.number(),
      mode: z.int(),
      modifiedMs: z.number(),
      linkTarget: z.string().nullable(),
    }),
  ),
  truncated: z.boolean(),
});
export type SessionFiles = z.infer<typeof SessionFiles>;

/** The files that undoing a turn changed. */
export const UndoneTurn = z.object({ session: SessionId, files: z.array(z.string()) });
export type UndoneTurn = z.infer<typeof UndoneTurn>;

export const BranchSession = z.strictObject({
  /** Absolute path of a git work tree or a folder in one. Absent: the folder that the session began from. */
  repository: PathText.optional(),
  name: z.string().min(1).max(1000).optional(),
  message: LongText.min(1).optional(),
  includeConfiguration: z.boolean().default(false),
});
export type BranchSession = z.input<typeof BranchSession>;

export const BranchedSession = z.object({
  session: SessionId,
  repository: z.string(),
  branch: z.string(),
  commit: z.string(),
  skipped: z.array(LeftOut),
  leftOut: z.array(LeftOut),
  ignored: Ignored,
});
export type BranchedSession = z.infer<typeof BranchedSession>;

export const RefreshSession = z.strictObject({
  /** A branch, tag or commit, which the session follows from then on. Absent: as it began. */
  ref: z.string().min(1).max(255).optional(),
  /** Also removes changes, ignored files and commits that only the session has. */
  discard: z.boolean().default(false),
});
export type RefreshSession = z.input<typeof RefreshSession>;

export const RefreshedSession = z.object({
  session: SessionId,
  /** The commit at which its workspace was before; null if it was not checked out. */
  before: z.string().nullable(),
  /** The same as before if there was nothing new. */
  commit: z.string(),
  /** How many changed files, and own commits, were discarded. */
  files: z.int().nonnegative(),
  commits: z.int().nonnegative(),
});
export type RefreshedSession = z.infer<typeof RefreshedSession>;

export const RefreshStep = z.union([z.object({ progress: z.string() }), z.object({ refreshed: RefreshedSession })]);
export type RefreshStep = z.infer<typeof RefreshStep>;

export const DiscardSession = z.strictObject({
  /** Also discard a session that is in use, or whose record is damaged. */
  force: z.boolean().default(false),
  /** The reason in the session's history. */
  why: z.enum(["discarded", "removed"]).default("discarded"),
});
export type DiscardSession = z.input<typeof DiscardSession>;

export const CleanUpSessions = z.strictObject({
  olderThanMs: z.number().nonnegative(),
  dryRun: z.boolean().default(false),
  /** Only these sessions: the ones that the user agreed to. */
  only: z.array(SessionId).max(10_000).optional(),
});
export type CleanUpSessions = z.input<typeof CleanUpSessions>;
export const CleanedSessions = z.object({ removed: z.array(SessionId), dryRun: z.boolean() });
export type CleanedSessions = z.infer<typeof CleanedSessions>;
