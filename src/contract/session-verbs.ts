import { z } from "zod";
import { LongText, PATH_CHARACTERS_MAX, PathText } from "./bounded.ts";
import { ChosenName, RuntimeName } from "./ids.ts";
import { created, next, owned, paged } from "./list-filter.ts";
import { SessionId } from "./run.ts";
import { Session, SessionLock, SessionScope } from "./session.ts";
import { SessionApplied, SessionBranched, SessionEvent } from "./session-event.ts";

/**
 * Arguments and answers of the station's verbs about sessions. A session is named by its own id or by that of a run in
 * it.
 */

/** A session as it is shown: an address in it has no password. */
export const SessionView = Session.extend({ lock: SessionLock.nullable() });
export type SessionView = z.infer<typeof SessionView>;

/** Which sessions; what is absent is not asked about. */
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

/** A session whose record cannot be used, and why. */
export const DamagedSession = z.object({ id: z.string(), reason: z.string() });
export type DamagedSession = z.infer<typeof DamagedSession>;

/** The last used first; with the first page, those whose record cannot be used. */
export const SessionList = z.object({ sessions: z.array(SessionView), damaged: z.array(DamagedSession), ...next });
export type SessionList = z.infer<typeof SessionList>;

export const SessionDetails = SessionView.extend({ history: z.array(SessionEvent) });
export type SessionDetails = z.infer<typeof SessionDetails>;

/** Something that differs and cannot be shown or applied, and why. */
export const LeftOut = z.object({ path: z.string(), reason: z.string() });
export type LeftOut = z.infer<typeof LeftOut>;

export const ChangedFile = z.object({
  path: z.string(),
  /** For a rename: where it was. */
  from: z.string().nullable(),
  kind: z.enum(["added", "removed", "modified", "renamed"]),
  binary: z.boolean(),
  linesAdded: z.int().nonnegative(),
  linesRemoved: z.int().nonnegative(),
  /** The user changed it after the agent's copy was made: applying would undo that. */
  changedOutside: z.boolean(),
  /** Why it is applied only when it is named, if so. */
  heldBack: z.string().nullable(),
});
export type ChangedFile = z.infer<typeof ChangedFile>;

export const DiffFile = z.object({
  kind: z.literal("file"),
  file: ChangedFile.omit({ binary: true, linesAdded: true, linesRemoved: true }),
});
export const DiffLeftOut = z.object({ kind: z.literal("leftOut"), leftOut: LeftOut });
export const DiffIgnored = z.object({ kind: z.literal("ignored"), count: z.int().positive() });

/**
 * A diff in pieces: of each changed file what it is, then its part of the patch, in whole lines; at the end, what was
 * left out.
 */
export const DiffPiece = z.discriminatedUnion("kind", [
  DiffFile,
  /** As git writes it. Bytes, since files need not be text. */
  z.object({ kind: z.literal("patch"), bytes: z.custom<Uint8Array>((value) => value instanceof Uint8Array) }),
  DiffLeftOut,
  DiffIgnored,
]);
export type DiffPiece = z.infer<typeof DiffPiece>;

/** New files that the user's own `.gitignore` files name: left out, and counted. */
const Ignored = z.int().nonnegative();

export const SessionDiff = z.object({ session: SessionId, files: z.array(ChangedFile), leftOut: z.array(LeftOut), ignored: Ignored });
export type SessionDiff = z.infer<typeof SessionDiff>;

/**
 * How many files of a session's are not in the user's folder, as far as that is known without a sandbox; null where it
 * is not.
 */
export const Unapplied = z.object({ files: z.int().nonnegative().nullable(), isMinimum: z.boolean() });
export type Unapplied = z.infer<typeof Unapplied>;

export const ApplySession = z.strictObject({
  /** Absolute. Absent: the folder the session began from. */
  folder: PathText.optional(),
  /** Files or folders; absent: everything. */
  paths: z.array(z.string().max(PATH_CHARACTERS_MAX)).max(10_000).optional(),
  /** Files or folders that are not applied. */
  leaveOut: z.array(z.string().max(PATH_CHARACTERS_MAX)).max(1000).default([]),
  /** Also what tools outside act on, without its being named. */
  includeConfiguration: z.boolean().default(false),
  /** Also new files that the user's own `.gitignore` files name; one that is named itself is always taken. */
  includeIgnored: z.boolean().default(false),
  /** Also over files that the user changed since the agent's copy was made. */
  force: z.boolean().default(false),
});
export type ApplySession = z.input<typeof ApplySession>;

export const AppliedSession = z.object({
  session: SessionId,
  folder: z.string(),
  applied: z.array(z.string()),
  skipped: z.array(LeftOut),
  /** Applied, and worth a second look. */
  told: z.array(LeftOut),
  leftOut: z.array(LeftOut),
  ignored: Ignored,
});
export type AppliedSession = z.infer<typeof AppliedSession>;

export const AskApplied = z.strictObject({
  /** By its number; absent: the last. */
  apply: z.int().positive().optional(),
});
export type AskApplied = z.input<typeof AskApplied>;

/** One apply of a session or sandbox, as it is remembered. */
export const AppliedChanges = z.object({
  /** Its number; later ones have larger numbers. */
  apply: z.int().positive(),
  at: z.string(),
  folder: z.string(),
  count: z.int().nonnegative(),
  hasDiff: z.boolean(),
});
export type AppliedChanges = z.infer<typeof AppliedChanges>;

export const AppliedFile = z.object({
  ...ChangedFile.pick({ path: true, from: true, kind: true, linesAdded: true, linesRemoved: true }).shape,
  /** As git writes it; of binary and of big files only that they differ. Null where there was no room to keep it. */
  patch: z.object({ encoding: z.enum(["utf8", "base64"]), text: z.string() }).nullable(),
});
export type AppliedFile = z.infer<typeof AppliedFile>;

/** What an apply changed in the folder. `isWhole`: nothing was too much to be kept. */
export const AppliedDiff = z.object({ apply: z.int().positive(), files: z.array(AppliedFile), isWhole: z.boolean() });
export type AppliedDiff = z.infer<typeof AppliedDiff>;

/** The last applies, the latest first, with the diff of the one that was asked for. */
export const SessionApplies = z.object({ session: SessionId, applies: z.array(AppliedChanges), diff: AppliedDiff.nullable() });
export type SessionApplies = z.infer<typeof SessionApplies>;

/** What was done elsewhere with the changes of a session or sandbox, by whoever has the folder they belong to. */
export const NoteSession = z.strictObject({
  /** Git's names of what was brought home, by path; empty for a file that was removed there. */
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

/** So many steps of a run. */
export const Step = z.int().nonnegative().max(1_000_000);

export const UndoTurns = z.strictObject({
  /** Every turn since the run had taken so many steps; absent: the last turn. */
  to: Step.optional(),
});
export type UndoTurns = z.input<typeof UndoTurns>;

/** Where a session's files can be had as they were: after so many steps of a run in it, when a turn began. */
export const SessionPoint = z.object({ run: z.string(), step: z.int().nonnegative(), turn: z.int().positive(), at: z.iso.datetime() });
export type SessionPoint = z.infer<typeof SessionPoint>;

/** A new session with the files of another. */
export const ForkSession = z.strictObject({
  /** Absent: it has an id alone. */
  name: ChosenName.optional(),
  /** As they were after so many steps of the run that was named, or of the session's last; absent: as they are now. */
  at: Step.optional(),
});
export type ForkSession = z.input<typeof ForkSession>;

/** A path of the workspace, relative to it. */
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

/** What is in one folder of a session's workspace. */
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

/** The files that are not any more what a turn made of them. */
export const UndoneTurn = z.object({ session: SessionId, files: z.array(z.string()) });
export type UndoneTurn = z.infer<typeof UndoneTurn>;

export const BranchSession = z.strictObject({
  /** Absolute; a git work tree or a folder in one. Absent: the folder the session began from. */
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

export const DiscardSession = z.strictObject({
  /** Also one that somebody works in, or whose record is damaged. */
  force: z.boolean().default(false),
  /** As its history shall say it. */
  why: z.enum(["discarded", "removed"]).default("discarded"),
});
export type DiscardSession = z.input<typeof DiscardSession>;

export const CleanUpSessions = z.strictObject({
  olderThanMs: z.number().nonnegative(),
  dryRun: z.boolean().default(false),
  /** Of these sessions alone: those that somebody agreed to. */
  only: z.array(SessionId).max(10_000).optional(),
});
export type CleanUpSessions = z.input<typeof CleanUpSessions>;
export const CleanedSessions = z.object({ removed: z.array(SessionId), dryRun: z.boolean() });
export type CleanedSessions = z.infer<typeof CleanedSessions>;
