import { z } from "zod";
import { PathText } from "../bounded.ts";
import { SessionId, SnapshotId } from "../ids.ts";
import { HostProcess } from "../process-identity.ts";
import { LOCAL_OWNER, Owner } from "../token/owner.ts";
import { FolderOrigin, UploadId } from "../upload/upload.ts";
import { HidingRules } from "../workspace/workspace-guard.ts";

/** The source of a workspace. */
export const WorkspaceSource = z.discriminatedUnion("kind", [
  /** One of the user's folders, copy-on-write. */
  z.strictObject({
    kind: z.literal("folder"),
    path: PathText,
    /** Absent: nothing is hidden inside. */
    hiding: HidingRules.optional(),
  }),
  z.strictObject({
    kind: z.literal("git"),
    url: z.string().min(1).max(4096),
    branch: z.string().min(1).max(255).optional(),
    /** Overrides the branch. */
    ref: z.string().min(1).max(255).optional(),
    depth: z.int().positive().optional(),
    submodules: z.boolean().default(false),
    /** Allowed sources of submodules in addition to the repository's own, in the syntax of `--submodules-from`. */
    submodulesFrom: z.array(z.string().min(1).max(1024)).max(100).optional(),
    /** The file of an SSH key for the host; the key never goes inside. */
    keyPath: PathText.optional(),
  }),
  z.strictObject({ kind: z.literal("empty") }),
  /** A folder that was sent from another machine. Its sender fetches the changes. */
  z.strictObject({ kind: z.literal("upload"), upload: UploadId, origin: FolderOrigin }),
]);
export type WorkspaceSource = z.infer<typeof WorkspaceSource>;

export const SessionScope = z.enum(["run", "session", "workflow"]);
export const SessionCleanup = z.enum(["always", "on_success", "never"]);
export type SessionCleanup = z.infer<typeof SessionCleanup>;

/** The persistent context that has a workspace, its lock and its history. */
export const Session = z.object({
  id: SessionId,
  /** The owner's name for it, if it differs from the id. Names are unique per owner, ids per machine. */
  name: z.string().optional(),
  owner: Owner.default(LOCAL_OWNER),
  createdAt: z.iso.datetime(),
  lastUsedAt: z.iso.datetime(),
  scope: SessionScope,
  cleanup: SessionCleanup,
  source: WorkspaceSource,
  /** The commit at which a git workspace began, and when it was checked out: later changes are the agent's. */
  commit: z.string().nullable(),
  preparedAt: z.iso.datetime().nullable().default(null),
  /** The runtime of its first sandbox, which has its files. */
  runtime: z.string().nullable().default(null),
  /** For a runtime without layers: the files at the end of the last run. */
  snapshot: z.object({ id: SnapshotId, runtime: z.string() }).nullable(),
  /**
   * The session from which it was forked. Files older than `at` were copied, and include the other session's work since
   * `since`.
   */
  forked: z.object({ from: SessionId, at: z.iso.datetime(), since: z.iso.datetime() }).nullable().default(null),
  /** When its files were last restored from a point: older files may have been copied at any time since it began. */
  restoredAt: z.iso.datetime().nullable().default(null),
  /** Uploads that are mounted in addition to its workspace. */
  uploads: z.array(UploadId).default([]),
});
export type Session = z.infer<typeof Session>;

/** The holder of a session's lock. */
export const LockHolder = HostProcess.extend({ run: z.string(), since: z.iso.datetime().optional() });
export type LockHolder = z.infer<typeof LockHolder>;

export const SessionLock = z.object({
  /** The holder. */
  owner: LockHolder,
  epoch: z.int(),
  expiresAtMs: z.number(),
  /** Whether the holder can no longer be working: its process ended, or the lease expired. */
  stale: z.boolean(),
});
export type SessionLock = z.infer<typeof SessionLock>;

/**
 * A session's files at some time: before a turn of a run in it, whose first event has the sequence `turnSeq`, or after
 * a step of a run.
 */
export const StoredPoint = z.object({
  run: z.string(),
  turnSeq: z.int().positive().optional(),
  step: z.int().nonnegative().optional(),
  at: z.iso.datetime().optional(),
  /** What storing its changes took. */
  bytes: z.int().nonnegative().optional(),
  /**
   * A point of the session's machine, null if it had no files yet; or the session's snapshot at that time. Earlier
   * versions made copies of the workspace's layer.
   */
  files: z.discriminatedUnion("kind", [
    z.object({ kind: z.literal("point"), id: z.string().nullable() }),
    z.object({ kind: z.literal("layer"), copy: z.string() }),
    z.object({ kind: z.literal("snapshot"), id: SnapshotId.nullable() }),
  ]),
});
export type StoredPoint = z.infer<typeof StoredPoint>;
