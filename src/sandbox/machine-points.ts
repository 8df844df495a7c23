import type { SandboxId, SnapshotId } from "../contract/ids.ts";

/** A point of a machine: its files at some moment, in root, home and workspace. */
export interface TakenPoint {
  /** Null if the machine has never written anything. */
  id: string | null;
  /** How many files changed since the last point, and the bytes that storing them takes. */
  files: number;
  bytes: number;
  /** False if nothing changed, so that the point is the last one. */
  isNew: boolean;
}

/** Storing and restoring the files of sessions. A session's files are in its layer folder. */
export interface MachinePoints {
  /**
   * Stores the files as they are now, and keeps them until `remove`. A running sandbox is frozen meanwhile; without
   * one, nothing may write to the layer. Throws `too_large` if more than this many bytes changed, `unsupported`,
   * `no_space`, `busy` while another process does the same.
   */
  take(layer: string, options: { sandbox?: SandboxId; bytesMax: number }): Promise<TakenPoint>;
  /**
   * Gives a session the files of a point, or none for null: completely or not at all, even if this process dies midway.
   * No sandbox may be using the layer. Throws `not_found`.
   */
  restore(layer: string, point: string | null): Promise<void>;
  /**
   * Fills an empty layer with the files of another layer's point, or with its current files; then no sandbox may be
   * using the other layer. Throws `too_large`, `unsupported`, `no_space`, `not_found`.
   */
  fork(from: string, to: string, options: { point?: string; bytesMax: number }): Promise<void>;
  /** Keeps a point of another layer. Throws `not_found`. */
  keep(layer: string, point: string): Promise<void>;
  /** Removes a point. Forks of it keep their files. Idempotent. */
  remove(layer: string, point: string): Promise<void>;
  /** Returns the points that a layer keeps. */
  list(layer: string): Promise<string[]>;
}

/**
 * Points of a runtime that stores no layers: each is a snapshot of the sandbox that is not listed. A session's layer
 * folder identifies who keeps it; the folder itself stays empty.
 */
export interface SnapshotPoints {
  /**
   * Stores the files of a sandbox, alive or dead, and keeps them until `remove`. `last` is the last point, of this or
   * another sandbox; `base` is the snapshot or point that the sandbox started from. If nothing changed since, the
   * result is that one. Throws `too_large` if storing takes more than this many bytes, `no_space`, `not_found`.
   */
  take(
    layer: string,
    options: { sandbox: SandboxId; last: SnapshotId | null; base: SnapshotId | null; bytesMax: number },
  ): Promise<TakenPoint>;
  /** Keeps a snapshot or a point for another session. Costs no space. Throws `not_found`. */
  keep(layer: string, id: SnapshotId): Promise<void>;
  /** Removes a point for a session. Its files go with the last session that keeps it. Idempotent. */
  remove(layer: string, id: SnapshotId): Promise<void>;
  /** Returns what a session keeps. */
  list(layer: string): Promise<SnapshotId[]>;
}
