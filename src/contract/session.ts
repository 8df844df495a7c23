import { z } from "zod";
import { PathText } from "./bounded.ts";
import { SnapshotId } from "./ids.ts";
import { LOCAL_OWNER, Owner } from "./owner.ts";
import { HostProcess } from "./process-identity.ts";
import { SessionId } from "./run.ts";
import { FolderOrigin, UploadId } from "./upload.ts";
import { HidingRules } from "./workspace-guard.ts";

/** Where a workspace comes from. */
export const WorkspaceSource = z.discriminatedUnion("kind", [
  /** A folder of the user's, seen copy-on-write. */
  z.strictObject({
    kind: z.literal("folder"),
    path: PathText,
    /** Absent: nothing of it is hidden inside. */
    hiding: HidingRules.optional(),
  }),
  z.strictObject({
    kind: z.literal("git"),
    url: z.string().min(1).max(4096),
    branch: z.string().min(1).max(255).optional(),
    /** Wins over the branch. */
    ref: z.string().min(1).max(255).optional(),
    depth: z.int().positive().optional(),
    submodules: z.boolean().default(false),
    /** Places that submodules may come from besides the repository's own, as `--submodules-from` takes them. */
    submodulesFrom: z.array(z.string().min(1).max(1024)).max(100).optional(),
    /** An SSH key's file, used by the host; it never goes inside. */
    keyPath: PathText.optional(),
  }),
  z.strictObject({ kind: z.literal("empty") }),
  /** A folder of another machine, as it was sent. What becomes of it is brought home by whoever sent it. */
  z.strictObject({ kind: z.literal("upload"), upload: UploadId, origin: FolderOrigin }),
]);
export type WorkspaceSource = z.infer<typeof WorkspaceSource>;

export const SessionScope = z.enum(["run", "session", "workflow"]);
export const SessionCleanup = z.enum(["always", "on_success", "never"]);

/** The lasting context that owns a workspace, its lock and its history. */
export const Session = z.object({
  id: SessionId,
  /** As its owner calls it, where that is not its id: names are an owner's own, ids are the machine's. */
  name: z.string().optional(),
  owner: Owner.default(LOCAL_OWNER),
  createdAt: z.iso.datetime(),
  lastUsedAt: z.iso.datetime(),
  scope: SessionScope,
  cleanup: SessionCleanup,
  source: WorkspaceSource,
  /** The commit a git workspace began at, and when it was checked out: what was written later is the agent's. */
  commit: z.string().nullable(),
  preparedAt: z.iso.datetime().nullable().default(null),
  /** Where its files are: the runtime of its first sandbox. */
  runtime: z.string().nullable().default(null),
  /** Where the runtime keeps no layer of its own: the files as the last run left them. */
  snapshot: z.object({ id: SnapshotId, runtime: z.string() }).nullable(),
  /**
   * The session whose files it began with. `at` is when they were copied: what is older among them is a copy of what
   * was made since `since`.
   */
  forked: z.object({ from: SessionId, at: z.iso.datetime(), since: z.iso.datetime() }).nullable().default(null),
  /** Uploads that are mounted beside its workspace. */
  uploads: z.array(UploadId).default([]),
});
export type Session = z.infer<typeof Session>;

/** Who works in a session: the holder of its lock. */
export const LockOwner = HostProcess.extend({ run: z.string(), since: z.iso.datetime().optional() });
export type LockOwner = z.infer<typeof LockOwner>;

export const SessionLock = z.object({
  owner: LockOwner,
  epoch: z.int(),
  expiresAtMs: z.number(),
  /** Whether its holder can no longer be working: its process is gone, or the time is up. */
  stale: z.boolean(),
});
export type SessionLock = z.infer<typeof SessionLock>;

/** The files of a session as they were before a turn of a run in it; the turn began with this event of the run. */
export const RestorePoint = z.object({
  run: z.string(),
  turnSeq: z.int().positive(),
  /** A copy of the workspace's layer; or the session's snapshot then, null for none. */
  files: z.discriminatedUnion("kind", [
    z.object({ kind: z.literal("layer"), copy: z.string() }),
    z.object({ kind: z.literal("snapshot"), id: SnapshotId.nullable() }),
  ]),
});
export type RestorePoint = z.infer<typeof RestorePoint>;
