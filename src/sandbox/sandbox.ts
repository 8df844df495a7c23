import type { Duplex } from "node:stream";
import type { ProcessRef, SandboxId, SnapshotId } from "../contract/ids.ts";
import type { Ended } from "../contract/outcome.ts";
import type { SandboxInfo, SandboxStats } from "../contract/sandbox/sandbox.ts";
import type { SandboxNetwork } from "./sandbox-network.ts";

/** Bytes from a caller: all at once, or as a stream. */
export type Bytes = Uint8Array | AsyncIterable<Uint8Array>;

export interface SpawnOptions {
  /** The program and its arguments; never a shell string. */
  argv: readonly string[];
  /** Starting the same ref again attaches to the first process. Absent: a new ref is created. */
  ref?: ProcessRef;
  /** An absolute path; default `/workspace`. */
  cwd?: string;
  /** Added to the sandbox's variables; `PATH`, `HOME`, `USER`, `LANG` have defaults. */
  env?: Readonly<Record<string, string>>;
  /** `user` (the default), `root` if the config allows it, a decimal uid or `UID:GID`. */
  user?: string;
  /**
   * `closed` gives end-of-file immediately; `pipe` waits for `write`. Default `closed`. A terminal always has a pipe.
   */
  stdin?: "closed" | "pipe";
  pty?: { cols: number; rows: number };
  /** Kills the whole tree, with the outcome `timedOut`. Never exceeds the sandbox's wall-clock limit. */
  timeoutMs?: number;
  /** Kills the tree after this much output; the outcome is `killed` with `output`. */
  outputBytesMax?: number;
  /**
   * For a process that usually has no listener. While no client is attached, it never blocks on output: the newest
   * megabyte of each stream is kept. Consumed output is kept as well, so each attach gets everything that is stored.
   * Without a timeout it runs as long as its sandbox, unless the config limits the wall clock. Throws `unsupported` for
   * a sandbox of an older Caisson.
   */
  keepLastOutput?: boolean;
}

export interface OutputChunk {
  stream: "stdout" | "stderr";
  /** The chunk's offset in its stream. */
  offset: number;
  data: Uint8Array;
}

/** One process in a sandbox. Dropping the handle never ends the process. */
export interface Process {
  readonly ref: ProcessRef;
  readonly pid: number;
  /** Its command with redacted secret values. Absent if that is the same as the original command. */
  readonly shownArgv?: readonly string[];
  /**
   * Its output, in order per stream, each byte once. There is one consumer; a slow one slows down the process, and
   * nothing is dropped. Ends after the last byte. Without a consumer, call `discardOutput`, or the process blocks.
   */
  readonly output: AsyncIterable<OutputChunk>;
  /**
   * Resolves when the process has ended and its output was consumed or discarded. Never rejects: a dead guest gives
   * `lost`.
   */
  readonly ended: Promise<Ended>;
  discardOutput(): void;
  /**
   * Resolves when the bytes were accepted (backpressure). Throws `invalid` if there is no stdin, `gone` after the
   * process ended.
   */
  write(data: Uint8Array): Promise<void>;
  closeStdin(): Promise<void>;
  resize(size: { cols: number; rows: number }): Promise<void>;
  /**
   * Signals the whole tree, or only the `leader`. Throws `invalid` for an unknown signal, but not for a process that
   * has ended.
   */
  signal(name: NodeJS.Signals, options?: { scope?: "tree" | "leader" }): Promise<void>;
  /** Kills every process of the tree and resolves when all have ended; the outcome is `killed` with `cancelled`. */
  kill(): Promise<void>;
  /** Stops listening. The process continues, and callers can attach to it again by its ref. */
  detach(): void;
}

export interface ProcessInfo {
  ref: ProcessRef | null;
  pid: number;
  parentPid: number;
  state: "running" | "ended";
  command: string;
  uid: number;
  startedMs: number;
  memoryBytes: number;
  cpuMs: number;
  /** Whether it was started with `keepLastOutput`, or descends from such a process. */
  keepsLastOutput: boolean;
}

/** Where to start. Absent: with the first stored byte. */
export interface AttachOptions {
  stdoutOffset?: number;
  stderrOffset?: number;
  /** False: returns only the output so far, then detaches; `ended` is `lost` unless the process has already ended. */
  follow?: boolean;
}

export type FileKind = "file" | "directory" | "link" | "fifo" | "socket" | "device";

export interface FileInfo {
  /** Relative to the listed folder; for `stat`, the requested path. */
  name: string;
  kind: FileKind;
  sizeBytes: number;
  mode: number;
  uid: number;
  gid: number;
  modifiedMs: number;
  linkTarget: string | null;
}

export type WatchKind = "created" | "modified" | "removed" | "movedHere" | "attributes" | "overflow";
export interface WatchEvent {
  kind: WatchKind;
  path: string;
  isDirectory: boolean;
}
/** Events since the promise of this watch resolved. Ends with `close` or the sandbox. */
export interface Watch extends AsyncIterable<WatchEvent> {
  close(): void;
}

/** The user of a file call, and a signal that cancels it: the call, or its iteration, throws `cancelled`. */
interface FileCall {
  user?: string;
  signal?: AbortSignal;
}

/**
 * What a tool gets: processes and files of one sandbox. Every path is a path inside; the guest does all work inside, as
 * the sandbox's user. All methods throw `invalid` for a malformed path or option, `lost` if the sandbox no longer
 * exists, `conflict` while it is paused, and `timeout` if the guest does not answer: `details.guest` is then `stopped`,
 * `frozen`, `silent` or `slow`.
 */
export interface Sandbox {
  readonly id: SandboxId;
  /**
   * Starts a process. Throws `not_found` for a missing program or cwd, `denied` for a user that the config does not
   * allow or a program that is not executable, `busy` beyond the process limit.
   */
  spawn(options: SpawnOptions): Promise<Process>;
  /** Takes over a process's output, from the first stored byte or from these offsets. Throws `not_found`, `gone`. */
  attach(ref: ProcessRef, options?: AttachOptions): Promise<Process>;
  /**
   * Removes what an ended process left behind; its ref can never be reused. Throws `busy` while it runs, `not_found`.
   */
  forget(ref: ProcessRef): Promise<void>;
  processes(): Promise<ProcessInfo[]>;
  /** Throws `not_found`, `denied`. */
  stat(path: string, options?: FileCall & { follow?: boolean }): Promise<FileInfo>;
  /**
   * Lists at most `entriesMax` (10,000) entries; `truncated` means that there were more. Throws `not_found`, `invalid`
   * for a file.
   */
  list(path: string, options?: FileCall & { depth?: number; entriesMax?: number }): Promise<{ entries: FileInfo[]; truncated: boolean }>;
  mkdir(path: string, options?: FileCall & { parents?: boolean; mode?: number }): Promise<void>;
  /** Throws `exists` unless `replace`. */
  move(from: string, to: string, options?: FileCall & { replace?: boolean }): Promise<void>;
  /** Never follows a link. Throws `conflict` for a folder that is not empty unless `recursive`. */
  remove(path: string, options?: FileCall & { recursive?: boolean }): Promise<void>;
  /**
   * Streams a regular file with backpressure. Throws before the first byte: `not_found`, `denied`, `invalid` for a
   * folder, `unsupported` for anything else that is not a regular file.
   */
  readFile(path: string, options?: FileCall & { offset?: number; length?: number }): Promise<AsyncIterable<Uint8Array>>;
  /**
   * Writes a file atomically: readers see the old content or the new, and a failure leaves only the old. Throws
   * `no_space`, `denied`, `not_found` (no parent).
   */
  writeFile(
    path: string,
    data: Bytes,
    options?: FileCall & { mode?: number; parents?: boolean; how?: "replace" | "append" | "create" },
  ): Promise<{ bytes: number }>;
  watch(path: string, options?: FileCall & { recursive?: boolean }): Promise<Watch>;
  /**
   * Unpacks an archive inside. `keepOwner`, for root only, gives entries the owners that the archive names. Throws
   * `unsafe` for an archive that tries to escape, `too_large`; entries that were already unpacked remain.
   */
  tarIn(
    folder: string,
    archive: Bytes,
    options?: FileCall & { bytesMax?: number; entriesMax?: number; stripComponents?: number; keepOwner?: boolean },
  ): Promise<{ entries: number; bytes: number }>;
  /** Packs a file or folder into a pax archive. The iteration throws if packing fails midway. */
  tarOut(path: string, options?: FileCall & { exclude?: readonly string[]; bytesMax?: number }): Promise<AsyncIterable<Uint8Array>>;
}

export interface ForkOptions {
  keep?: boolean;
  /** Whether the new sandbox continues the processes too. Throws `unsupported` where that does not work. */
  memory?: boolean;
}

export interface SnapshotOptions {
  name?: string;
  /**
   * Whether to store the processes too, which then continue in every sandbox from this snapshot. Throws `unsupported`
   * where that does not work, and names the process that cannot be stored; the sandbox continues.
   */
  memory?: boolean;
}

export interface PauseOptions {
  /**
   * Whether to store the processes on the disk and end them, so that the pause survives a reboot of the machine. Every
   * handle of the sandbox closes. Throws `unsupported`, like a snapshot with `memory`.
   */
  toDisk?: boolean;
}

/** A connection from inside to a port that the host serves. */
export interface InboundConnection {
  /** `end()` is a half-close, `destroy()` a reset. A slow reader on either side slows down the other. */
  stream: Duplex;
  /** The original destination of a transparent connection; null for a connection to the served loopback port. */
  destination: { address: string; port: number } | null;
}

/** Answers what programs inside send to addresses in the outside world, as if there were no wall. */
export interface TransparentService {
  /** The TCP ports to serve, at every address. Connections to other ports are refused. */
  ports: readonly number[];
  /** Receives connections with a destination: the address that the program tried to reach. */
  onConnection: (connection: InboundConnection) => void;
  /**
   * Answers a query to UDP port 53 of any address; the answer seems to come from that address. Null, or an error, means
   * no answer.
   */
  onDatagram: (question: Buffer) => Buffer | null | Promise<Buffer | null>;
}

/**
 * A sandbox with its lifecycle, for the platform only. Tools never get it; see `restricted`. No method uses `this`, so
 * that a network can wrap it.
 */
export interface OwnedSandbox extends Sandbox, AsyncDisposable {
  /** The state after the last change that this handle made or saw. */
  readonly info: SandboxInfo;
  /** Null for a runtime that has no network; see `addNetworking` in src/network. */
  readonly network: SandboxNetwork | null;
  /** Resolves when the sandbox no longer exists, whatever the reason. Never rejects. */
  readonly closed: Promise<{ why: "destroyed" | "lost" }>;
  /**
   * Declares this handle the holder with number `epoch` of the work `name`. Handles of earlier holders of the same work
   * are closed and their requests to the guest end before this resolves, so they can no longer write. Commands keep
   * running. Throws `superseded` if a later holder exists, `unsupported` for an older guest.
   */
  fence(owner: { name: string; epoch: number }): Promise<void>;
  /** Measures a round trip to the guest. Throws `timeout`, `lost`. */
  ping(): Promise<{ roundTripMs: number }>;
  /** The time of the guest's last frame; it sends a heartbeat every 5 s. */
  lastHeardMs(): number;
  stats(): Promise<SandboxStats>;
  /** Opens a connection to a port on the sandbox's loopback. Throws `unavailable` if nothing listens there. */
  connect(port: number): Promise<Duplex>;
  listeners(): Promise<{ port: number; address: string }[]>;
  /**
   * Receives the connections that programs inside make to this port of the sandbox's loopback. The latest caller gets
   * them; when it closes or dies, the previous caller gets them again. Without any caller, the guest answers that no
   * process serves the network. Throws `unsupported` if the runtime has no separate network, `conflict` if a program
   * inside uses the port.
   */
  serve(port: number, onConnection: (connection: InboundConnection) => void): Promise<{ close(): void }>;
  /**
   * Receives the connections and queries that programs inside send to any address. As with `serve`, the latest caller
   * gets the ports, so to change them, call again and close the previous claim. Throws `unsupported` for a sandbox that
   * was created without a transparent network, `conflict`, `busy` beyond 256 ports.
   */
  serveTransparent(service: TransparentService): Promise<{ close(): void }>;
  /** Freezes every process. Idempotent. Throws `unsupported`. */
  pause(options?: PauseOptions): Promise<void>;
  resume(): Promise<void>;
  /** Stores the files, and with `memory` the processes, for later sandboxes. Throws `unsupported`, `no_space`. */
  snapshot(options?: SnapshotOptions): Promise<SnapshotId>;
  /**
   * Creates a new sandbox from this one's current files. It inherits `keep` unless the options override it. Throws
   * `unsupported`.
   */
  fork(options?: ForkOptions): Promise<OwnedSandbox>;
  /** Releases the sandbox without ending it. Throws `invalid` unless it was created with `keep`. */
  release(): Promise<void>;
  /**
   * Closes this handle and leaves the sandbox alone, with or without `keep`: for a sandbox that another caller created.
   * Its commands continue. Idempotent.
   */
  detach(): Promise<void>;
  /** Ends every process and removes everything. Idempotent; resolves when nothing remains on the host. */
  destroy(): Promise<void>;
}

const toolMethods = [
  "spawn",
  "attach",
  "forget",
  "processes",
  "stat",
  "list",
  "mkdir",
  "move",
  "remove",
  "readFile",
  "writeFile",
  "watch",
  "tarIn",
  "tarOut",
] as const satisfies readonly (keyof Sandbox)[];

/** Returns the part of a sandbox that a tool may use. Even at run time, it gives no access to the lifecycle. */
export function restricted(owned: OwnedSandbox): Sandbox {
  const narrowed: Record<string, unknown> = { id: owned.id };
  for (const name of toolMethods) narrowed[name] = (owned[name] as (...args: unknown[]) => unknown).bind(owned);
  return Object.freeze(narrowed) as unknown as Sandbox;
}
