import type { z } from "zod";
import type { SandboxEvent } from "../contract/event.ts";
import type { SeenProcess } from "../contract/health.ts";
import type { RuntimeName, SandboxId, SnapshotId } from "../contract/ids.ts";
import type { BuildImage, ImageView } from "../contract/image-verbs.ts";
import type { Capabilities, SandboxInfo, SandboxSpec, SandboxStats } from "../contract/sandbox.ts";
import type { DiskShares } from "./disk-shares.ts";
import type { GitIdentity } from "./git-settings.ts";
import type { GuestCondition } from "./guest/waits.ts";
import type { OwnedSandbox } from "./sandbox.ts";

/** What every runtime is given by the composition root. Nothing here is read from the environment by a runtime. */
export interface RuntimeContext {
  /** `$CAISSON_HOME`: sandboxes, snapshots, templates and sockets live below it. Exists, mode 0700. */
  stateDir: string;
  /** The static guest binary. */
  guestPath: string;
  /** Who commits inside; absent: nobody. */
  gitIdentity?: () => GitIdentity;
  onEvent?: (event: SandboxEvent) => void;
  /** What may be written to the state folder. Absent: as `createDiskShares` has it. */
  disk?: DiskShares;
}

export interface Finding {
  level: "ok" | "note" | "problem";
  /** What was found, as a sentence. */
  text: string;
  /** The exact command or setting that fixes it. */
  fix?: string;
}

export interface Probe {
  usable: boolean;
  /** Measured: create to first output. */
  startMs: number | null;
  findings: Finding[];
}

export interface SnapshotInfo {
  id: SnapshotId;
  name: string | null;
  sandbox: SandboxId;
  /** Whose it is; absent: the user's of this machine. */
  owner?: string;
  createdAt: string;
  bytes: number;
  /** A folder of the host's over which its workspace is; absent: all of that is in the snapshot. */
  workspaceFolder?: string;
}

/** Images that a runtime builds and keeps, to start sandboxes from by their name. */
export interface RuntimeImages {
  /**
   * What is being done, at last the image. It is there whole or not at all, and takes the place of one of its name.
   * Throws `unavailable`, `unsupported`, `no_space`.
   */
  build(request: z.output<typeof BuildImage>): AsyncIterable<{ progress: string } | { image: ImageView }>;
  /** By name. */
  list(): Promise<ImageView[]>;
  /** Throws `not_found`, `conflict` while it is in use. */
  remove(name: string): Promise<void>;
}

/** What the host sees of a sandbox, nobody inside being asked. */
export interface HostView {
  condition: GuestCondition;
  stats: SandboxStats | null;
  /** At most some hundred. */
  processes: SeenProcess[];
}

/** Of what is kept ready: how many wait, how many shall, and how many sandboxes were given from it or made afresh. */
export interface PoolSize {
  waiting: number;
  size: number;
  ready: number;
  fresh: number;
}

export interface OpenOptions {
  /**
   * Whether this process serves the sandbox's network as long as it holds it. Otherwise it is left to whoever does, or
   * to a keeper.
   */
  serveNetwork?: boolean;
}

/** One kind of place where sandboxes live. A runtime is a folder under `runtimes/`; see docs/adding-a-runtime.md. */
export interface Runtime extends AsyncDisposable {
  readonly name: RuntimeName;
  /** To how many milliseconds a snapshot rounds the times of files down; absent: it keeps them. */
  readonly snapshotGrainMs?: number;
  /**
   * What can be enforced on this machine. Cheap and cached; starts nothing. Throws `unavailable` when the runtime
   * cannot be used at all.
   */
  capabilities(): Promise<Capabilities>;
  /** Really starts a sandbox, runs a command, compares namespaces, and says what it found. Never throws. */
  probe(): Promise<Probe>;
  /**
   * Enforces everything in the spec or refuses with `unsupported` before anything is made. On any failure, and on
   * abort, nothing is left behind. Throws `invalid` (workspace or image that is not one), `not_found`, `unavailable`
   * (engine dead), `cancelled`.
   */
  create(spec: SandboxSpec, options?: { signal?: AbortSignal }): Promise<OwnedSandbox>;
  /**
   * Re-attaches to a live sandbox, made by this process or another. Throws `not_found`, and `lost` or `protocol` when
   * only its remains are there; no other failure has these codes.
   */
  open(id: SandboxId, options?: OpenOptions): Promise<OwnedSandbox>;
  /**
   * Keeps the files of a sandbox that died, from what is left of it, as a snapshot. Absent: there is nothing left of
   * them, or they are not in the sandbox. Throws `not_found`, `lost` when they are gone, `no_space`.
   */
  salvage?(id: SandboxId, options: { name: string }): Promise<SnapshotId>;
  /** Also of one that does not answer, or has died. Throws `not_found`. Absent: the host sees nothing of it. */
  look?(id: SandboxId): Promise<HostView>;
  /**
   * Ends everything in a sandbox by the host's own means, whether its guest answers or not. Its record and its files
   * stay; `open` throws `lost` from then on. Idempotent. Throws `not_found`. Absent: it can only be removed.
   */
  kill?(id: SandboxId): Promise<void>;
  /**
   * Ends everything in a sandbox and starts it again over its own files: the same sandbox, without its processes and
   * what was in memory. A process that dies over it leaves one that can be restarted again. `beforeEnd` runs before
   * anything ends, and only for a sandbox whose files stay. Throws `not_found`, `unsupported` for one whose files are
   * gone or would go, `unavailable`. Absent: the runtime cannot.
   */
  restart?(id: SandboxId, options?: { beforeEnd?: () => Promise<void> }): Promise<void>;
  list(): Promise<SandboxInfo[]>;
  /**
   * Removes what dead creators left, except kept sandboxes, and finishes half-done creates and deletes. Returns what it
   * removed.
   */
  sweep(): Promise<SandboxId[]>;
  /**
   * Ends whatever this runtime runs under an id whose record cannot be read, and removes what it has of it. Nothing
   * there is no failure; the folder itself is the store's to remove. Throws `unavailable` when the engine is dead.
   */
  discard(id: SandboxId): Promise<void>;
  /**
   * The folder of the host with the files that sandboxes changed in a workspace, given the workspace's layer; it need
   * not exist. Its names and times tell where to look for changes, nothing else is believed of it. Absent: the runtime
   * keeps no layers.
   */
  layerFolder?(layer: string): string;
  /**
   * The same of a sandbox whose changes to an overlaid workspace go with it; not there where they are on a disk of its
   * own, or there is no such workspace. Absent: the runtime keeps them where nobody outside can look.
   */
  changesFolder?(id: SandboxId): string;
  /** What is kept ready for whoever asks. Absent: nothing ever is. */
  pooled?(): PoolSize;
  /**
   * Removes what sandboxes wrote to a workspace's layer, whoever owns it; the folder itself stays. Absent: an ordinary
   * removal does.
   */
  removeLayer?(layer: string): Promise<void>;
  /** Absent: the runtime builds none. */
  readonly images?: RuntimeImages;
  /**
   * Keeps what sandboxes wrote to a workspace's layer, as it is now, beside it under a name; no sandbox may be on it.
   * Throws `too_large` past so many bytes, `unsupported` for a layer of which no copy can be made, `no_space`. Absent:
   * the runtime keeps no layers.
   */
  copyLayer?(layer: string, copy: { name: string; bytesMax: number }): Promise<void>;
  /**
   * The layer is as it was when the copy was made, or for null as if nobody had written to it: all of it or nothing,
   * also when this process dies on the way. The copy stays; no sandbox may be on the layer.
   */
  restoreLayer?(layer: string, name: string | null): Promise<void>;
  /**
   * A layer that nobody has written to gets what another has now, or what the copy of this name has: all of it or
   * nothing that counts. No sandbox may be on the other unless it is a copy that is asked for. Throws `too_large`,
   * `unsupported`, `no_space`. Absent: the runtime keeps no layers.
   */
  forkLayer?(from: string, to: string, how: { copy?: string; bytesMax: number }): Promise<void>;
  removeLayerCopy?(layer: string, name: string): Promise<void>;
  /**
   * Packs files below a folder into an archive, by their names there, with whatever sandboxes own among them; nothing
   * moves in the sandboxes of `still` meanwhile. What others change is no failure: the archive is whole, and the answer
   * says that something `hasChanged`. Names that are gone are left out; there is no archive when all are.
   * `unpackFiles` brings them back as they were. Throws `unavailable`, `not_found` for a sandbox that is gone, `busy`
   * for one that somebody else copies. Absent: ordinary means do.
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
