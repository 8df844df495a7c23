import type { z } from "zod";
import type { SeenProcess } from "../contract/health/health.ts";
import type { RuntimeName, SandboxId, SnapshotId } from "../contract/ids.ts";
import type { BuildImage, ImageView } from "../contract/image/image-verbs.ts";
import type { Capabilities, SandboxConfig, SandboxInfo, SandboxStats } from "../contract/sandbox/sandbox.ts";
import type { SandboxEvent } from "../contract/sandbox/sandbox-event.ts";
import type { Crashpoint } from "../lib/crashpoint.ts";
import type { DiskShares } from "./disk-shares.ts";
import type { GitIdentity } from "./git-settings.ts";
import type { GuestCondition } from "./guest/waits.ts";
import type { MachinePoints, SnapshotPoints } from "./machine-points.ts";
import type { OwnedSandbox } from "./sandbox.ts";

/** What the composition root passes to every runtime. Runtimes read nothing of this from the environment. */
export interface RuntimeContext {
  /** `$CAISSON_HOME`, the folder for sandboxes, snapshots, templates and sockets. It exists, with mode 0700. */
  stateDir: string;
  /** The path of the static guest binary. */
  guestPath: string;
  /** The author of commits inside. Absent: no identity. */
  gitIdentity?: () => GitIdentity;
  onEvent?: (event: SandboxEvent) => void;
  /** Limits writes to the state folder. Absent: the defaults of `createDiskShares`. */
  disk?: DiskShares;
  /** For recovery tests: called around every durable write. */
  crashpoint?: Crashpoint;
}

export interface Finding {
  level: "ok" | "note" | "problem";
  /** The finding, as a sentence. */
  text: string;
  /** The exact command or setting that fixes it. */
  fix?: string;
}

export interface Probe {
  usable: boolean;
  /** The measured time from create to the first output. */
  startMs: number | null;
  findings: Finding[];
}

export interface SnapshotInfo {
  id: SnapshotId;
  name: string | null;
  sandbox: SandboxId;
  /** The snapshot's owner. Absent: this machine's user. */
  owner?: string;
  createdAt: string;
  bytes: number;
  /** Whether it contains processes. */
  memory?: boolean | undefined;
  /** The host folder below its workspace. Absent: the snapshot contains the whole workspace. */
  workspaceFolder?: string;
}

/** Images that a runtime builds and stores, to create sandboxes from by name. */
export interface RuntimeImages {
  /**
   * Yields progress, and finally the image. The image appears complete or not at all, and replaces an image of the same
   * name. Throws `unavailable`, `unsupported`, `no_space`.
   */
  build(request: z.output<typeof BuildImage>): AsyncIterable<{ progress: string } | { image: ImageView }>;
  /** Lists the images, sorted by name. */
  list(): Promise<ImageView[]>;
  /** Throws `not_found`, and `conflict` while the image is in use. */
  remove(name: string): Promise<void>;
  /**
   * Returns the stored files that nothing uses: unpacked images without a name (`image`), and copies of this machine's
   * system (`template`). Each is a folder of this name in the state folder's `templates`.
   */
  unused(): Promise<{ kind: "image" | "template"; name: string; lastUsedMs: number }[]>;
  /** Removes such files. Returns false if they are in use again. */
  removeUnused(name: string): Promise<boolean>;
}

/** A sandbox as the host sees it, without asking the guest. */
export interface HostView {
  condition: GuestCondition;
  stats: SandboxStats | null;
  /** Limited to a few hundred. */
  processes: SeenProcess[];
}

/**
 * The pool of prepared sandboxes: how many are waiting, how many it should hold, how many sandboxes came from it, and
 * how many were created without it.
 */
export interface PoolSize {
  waiting: number;
  size: number;
  ready: number;
  fresh: number;
}

export interface OpenOptions {
  /**
   * Whether this process serves the sandbox's network while it holds the sandbox. Otherwise another process or a keeper
   * does.
   */
  serveNetwork?: boolean;
}

/** A kind of place in which sandboxes run. Each runtime is a folder under `runtimes/`; see docs/changing/runtime.md. */
export interface Runtime extends AsyncDisposable {
  readonly name: RuntimeName;
  /** The granularity, in milliseconds, to which a snapshot rounds down file times. Absent: it preserves them. */
  readonly snapshotGrainMs?: number;
  /**
   * Restores a sandbox that is paused on the disk, so that `open` works again; does nothing for any other. Absent: this
   * runtime cannot pause to the disk. A failure leaves the sandbox paused, and can be tried again.
   */
  wake?(id: SandboxId): Promise<void>;
  /**
   * Returns what this machine can enforce. Cheap and cached; starts nothing. Throws `unavailable` if the runtime is
   * unusable.
   */
  capabilities(): Promise<Capabilities>;
  /** Starts a real sandbox, runs a command, compares namespaces, and reports its findings. Never throws. */
  probe(): Promise<Probe>;
  /**
   * Creates a sandbox that enforces everything in the config, or throws `unsupported` before it creates anything. After
   * a failure or an abort, nothing remains. Throws `invalid` (an invalid workspace or image), `not_found`,
   * `unavailable` (engine dead), `cancelled`.
   */
  create(config: SandboxConfig, options?: { signal?: AbortSignal }): Promise<OwnedSandbox>;
  /**
   * Reattaches to a live sandbox that this or another process created. Throws `not_found`, and `lost` or `protocol` if
   * only its remains exist; no other failure has these codes.
   */
  open(id: SandboxId, options?: OpenOptions): Promise<OwnedSandbox>;
  /**
   * Stores the remaining files of a dead sandbox as a snapshot. Absent: no files remain, or they are not in the
   * sandbox. Throws `not_found`, `lost` if the files no longer exist, `no_space`.
   */
  salvage?(id: SandboxId, options: { name: string }): Promise<SnapshotId>;
  /**
   * Returns the host's view, even of a sandbox that is dead or does not answer. Throws `not_found`. Absent: the host
   * cannot see into it.
   */
  look?(id: SandboxId): Promise<HostView>;
  /**
   * Ends everything in a sandbox from the host, whether or not its guest answers. Its record and files remain, and
   * `open` then throws `lost`. Idempotent. Throws `not_found`. Absent: the sandbox can only be removed.
   */
  kill?(id: SandboxId): Promise<void>;
  /**
   * Ends everything in a sandbox and starts it again with its files: the same sandbox, without its processes and
   * memory. If this process dies during the restart, the sandbox can be restarted again. `beforeEnd` runs before
   * anything ends, and only for a sandbox whose files remain. Throws `not_found`, `unsupported` if the files are lost
   * or would be, `unavailable`. Absent: the runtime cannot restart sandboxes.
   */
  restart?(id: SandboxId, options?: { beforeEnd?: () => Promise<void> }): Promise<void>;
  list(): Promise<SandboxInfo[]>;
  /**
   * Removes what dead creators left behind, except kept sandboxes, and finishes incomplete creates and deletes. Returns
   * the ids it removed.
   */
  sweep(): Promise<SandboxId[]>;
  /**
   * Ends everything that this runtime runs under an id whose record cannot be read, and removes its data. Succeeds if
   * there is nothing; the store removes the folder itself. Throws `unavailable` if the engine is dead.
   */
  discard(id: SandboxId): Promise<void>;
  /**
   * Returns the host folders with the files that sandboxes changed in a workspace, topmost first, given the workspace's
   * layer; the topmost need not exist. With a point, those of that point. Their names and times only hint at where to
   * look for changes. Null if the host does not see them. Absent: the runtime stores no layers.
   */
  layerFolders?(layer: string, options?: { point?: string }): Promise<string[] | null>;
  /**
   * Like `layerFolders`, for a sandbox whose changes to an overlaid workspace are removed with it. The folder does not
   * exist if the changes are on a separate disk or there is no such workspace. Absent: the host cannot read the
   * changes.
   */
  changesFolder?(id: SandboxId): string;
  /** Returns the size of the pool of prepared sandboxes. Absent: the runtime has no pool. */
  pooled?(): PoolSize;
  /**
   * Removes what sandboxes wrote to a workspace's layer, whichever user ids own it; the folder itself remains. Absent:
   * an ordinary removal works.
   */
  removeLayer?(layer: string): Promise<void>;
  /** Absent: the runtime builds no images. */
  readonly images?: RuntimeImages;
  /** Absent: a session's files are in its snapshot. */
  readonly points?: MachinePoints;
  /** Absent, without `points`: a session's files are stored at the end of each turn only. */
  readonly snapshotPoints?: SnapshotPoints;
  /**
   * Packs files below a folder into an archive under their names there, including files that sandboxes own. The
   * sandboxes in `still` are frozen while it runs. Changes by others are not a failure: the archive is valid, and the
   * result says that something `hasChanged`. Missing names are skipped; if all are missing, there is no archive.
   * `unpackFiles` restores the files as they were. Throws `unavailable`, `not_found` for a sandbox that no longer
   * exists, `busy` for one that another process is copying. Absent: ordinary tools work.
   */
  packFiles?(options: {
    folder: string;
    names: readonly string[];
    file: string;
    still: readonly SandboxId[];
  }): Promise<{ hasChanged: boolean }>;
  unpackFiles?(options: { file: string; folder: string }): Promise<void>;
  snapshots(): Promise<SnapshotInfo[]>;
  removeSnapshot(id: SnapshotId): Promise<void>;
}
