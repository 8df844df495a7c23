import { z } from "zod";
import { SessionId } from "../run.ts";
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
  Step,
  Unapplied,
  UndoneTurn,
  UndoTurns,
} from "../session-verbs.ts";
import { Output } from "./exec.ts";
import { NameOrId } from "./name-or-id.ts";
import { pageLimit } from "./page-limit.ts";
import type { Route } from "./route.ts";

/** By a session's own id or by that of a run in it. */
const params = { session: NameOrId };
const paths = z.array(z.string().min(1).max(4096)).max(1000).optional();

/** After so many steps of the run that is named, or of the session's last. */
const at = Step.optional();

const Named = z.object({ session: SessionId });

/** A piece of a diff, whose bytes are text here. */
export const SentDiffPiece = z.discriminatedUnion("kind", [
  DiffFile,
  z.object({ kind: z.literal("patch"), ...Output.shape }),
  DiffLeftOut,
  DiffIgnored,
]);

/** Of forty thousand files. */
const NOTE_BYTES_MAX = 16 * 1024 * 1024;

export const sessionRoutes = {
  "sessions.list": {
    summary: "List sessions, the last used first.",
    scope: "read",
    query: ListSessions.extend({ limit: pageLimit }),
    answer: { json: SessionList },
  },
  "sessions.get": { summary: "One session, with its history.", scope: "read", params, answer: { json: SessionDetails } },
  "sessions.diff": {
    summary: "Which files a session's runs changed.",
    scope: "read",
    params,
    query: z.strictObject({ paths, includeIgnored: z.boolean().optional(), at }),
    answer: { json: SessionDiff },
  },
  "sessions.patch": {
    summary: "The changes themselves, as git writes them; or as events, with what is known of each file and what was left out.",
    scope: "read",
    params,
    query: z.strictObject({ paths, includeIgnored: z.boolean().optional(), brief: z.boolean().optional(), at }),
    answer: { bytes: "text/x-diff", events: SentDiffPiece },
  },
  "sessions.apply": {
    summary: "Bring a session's changes to a folder of the station's machine.",
    scope: "admin",
    params,
    body: ApplySession,
    bodyOptional: true,
    answer: { json: AppliedSession },
  },
  "sessions.applied": {
    summary: "What the last applies of a session brought to a folder: each with its time, and the diff of one of them.",
    scope: "read",
    params,
    query: AskApplied,
    answer: { json: SessionApplies },
  },
  "sessions.branch": {
    summary: "Commit a session's changes on a new branch of a repository of the station's machine.",
    scope: "admin",
    params,
    body: BranchSession,
    bodyOptional: true,
    answer: { json: BranchedSession },
  },
  "sessions.changes": {
    summary:
      "The changes as a tar archive, for whoever has the folder they belong to: a manifest with digests, then each content once. `base`: with those from before.",
    scope: "read",
    params,
    query: z.strictObject({ paths, includeIgnored: z.boolean().optional(), base: z.boolean().optional(), at }),
    answer: { bytes: "application/x-tar" },
  },
  "sessions.note": {
    summary: "Tell what was done with the changes elsewhere: brought to a folder, or committed on a branch.",
    scope: "run",
    params,
    body: NoteSession,
    bodyBytesMax: NOTE_BYTES_MAX,
    answer: {},
  },
  "sessions.unlock": {
    summary: "Take a session's lock away from a holder that died; with `force`, from any.",
    scope: "run",
    params,
    body: z.strictObject({ force: z.boolean().default(false) }),
    bodyOptional: true,
    answer: { json: Named },
  },
  "sessions.discard": {
    summary: "Remove a session with everything it kept.",
    scope: "run",
    params,
    query: DiscardSession,
    answer: { json: Named },
  },
  "sessions.unapplied": {
    summary: "Roughly how much a session's runs changed, at the price of a look.",
    scope: "read",
    params,
    answer: { json: Unapplied },
  },
  "sessions.undo": {
    summary: "Take back what the last turn of a run changed in files, or every turn since a step; what was applied stays applied.",
    scope: "run",
    params: { run: NameOrId },
    body: UndoTurns,
    bodyOptional: true,
    answer: { json: UndoneTurn },
  },
  "sessions.points": {
    summary: "After which steps of its runs a session's files were kept.",
    scope: "read",
    params,
    answer: { json: z.object({ points: z.array(SessionPoint) }) },
  },
  "sessions.files": {
    summary: "What is in a folder of a session's workspace, as it is or as it was after a step.",
    scope: "read",
    params,
    query: ListSessionFiles,
    answer: { json: SessionFiles },
  },
  "sessions.readFile": {
    summary: "A file of a session's workspace, as it is or as it was after a step.",
    scope: "read",
    params,
    query: ReadSessionFile,
    answer: { bytes: "application/octet-stream" },
  },
  "sessions.fork": {
    summary: "A new session with the files of this one, as they are or as they were after a step.",
    scope: "run",
    params,
    body: ForkSession,
    bodyOptional: true,
    answer: { status: 201, json: SessionView },
  },
  "sessions.cleanup": {
    summary: "Remove sessions that nobody used for a while, and those that should have gone with their run.",
    scope: "run",
    body: CleanUpSessions,
    answer: { json: CleanedSessions },
  },
} as const satisfies Record<string, Route>;
