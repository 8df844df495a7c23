import type { Duplex } from "node:stream";
import type { ProcessRef, SandboxId, SnapshotId } from "../contract/ids.ts";
import type { Ended } from "../contract/outcome.ts";
import type { SandboxInfo, SandboxStats } from "../contract/sandbox.ts";
import type { SandboxNetwork } from "./sandbox-network.ts";

/** Bytes as a caller may give them: at once, or as they come. */
export type Bytes = Uint8Array | AsyncIterable<Uint8Array>;

export interface SpawnOptions {
  /** The program and its arguments; never a shell string. */
  argv: readonly string[];
  /** Starting the same ref again attaches to the first process. Absent: a fresh one is made. */
  ref?: ProcessRef;
  /** Absolute; default `/workspace`. */
  cwd?: string;
  /** Added to the sandbox's own; `PATH`, `HOME`, `USER`, `LANG` have defaults. */
  env?: Readonly<Record<string, string>>;
  /** `user` (the default), `root` where the spec allows it, or a decimal uid. */
  user?: string;
  /** `closed` gives end-of-file at once; `pipe` waits for `write`. Default `closed`. A terminal always has a pipe. */
  stdin?: "closed" | "pipe";
  pty?: { cols: number; rows: number };
  /** Kills the whole tree; the outcome is `timedOut`. Never longer than the sandbox's wall-clock limit. */
  timeoutMs?: number;
  /** Ends the tree once it wrote this much; the outcome is `killed` for `output`. */
  outputBytesMax?: number;
  /**
   * For a process that nobody listens to most of the time. While nobody is attached it never waits: the oldest of a
   * megabyte for each stream makes room. What was taken is kept, too, so that each attach gives all that is there.
   * Without a timeout it runs as long as its sandbox, unless the spec limits the wall clock. Throws `unsupported` for
   * a sandbox of an older Caisson.
   */
  keepLastOutput?: boolean;
}

export interface OutputChunk {
  stream: "stdout" | "stderr";
  /** Where this chunk begins in its stream. */
  offset: number;
  data: Uint8Array;
}

/** One process in a sandbox. Letting go of the handle never ends the process. */
export interface Process {
  readonly ref: ProcessRef;
  readonly pid: number;
  /** Its command as it may be shown, where that is not as it was asked for: values of secrets are redacted. */
  readonly shownArgv?: readonly string[];
  /**
   * What it writes, in order for each stream, each byte once. One consumer; a slow one slows the process down, nothing
   * is dropped. Ends after the last byte. When nobody iterates, `discardOutput` keeps the process from waiting.
   */
  readonly output: AsyncIterable<OutputChunk>;
  /** Resolves once it ended and its output was consumed or discarded. Never rejects: a dead guest gives `lost`. */
  readonly ended: Promise<Ended>;
  discardOutput(): void;
  /** Resolves when the bytes were taken (back-pressure). Throws `invalid` without a stdin, `gone` after its end. */
  write(data: Uint8Array): Promise<void>;
  closeStdin(): Promise<void>;
  resize(size: { cols: number; rows: number }): Promise<void>;
  /** To the whole tree unless `leader`. Throws `invalid` for an unknown signal; an ended process is no error. */
  signal(name: NodeJS.Signals, options?: { scope?: "tree" | "leader" }): Promise<void>;
  /** Kills every process of the tree and resolves when none lives; the outcome is `killed` for `cancelled`. */
  kill(): Promise<void>;
  /** Stops listening; the process goes on and can be attached to again by its ref. */
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
  /** It was started with `keepLastOutput`, or descends from one that was. */
  keepsLastOutput: boolean;
}

/** Where to begin; absent: with the first byte that is kept. */
export interface AttachOptions {
  stdoutOffset?: number;
  stderrOffset?: number;
  /**
   * False: only what was written by now; then the handle lets go, and `ended` is `lost` unless the process had ended.
   */
  follow?: boolean;
}

export type FileKind = "file" | "directory" | "link" | "fifo" | "socket" | "device";

export interface FileInfo {
  /** Relative to the folder that was listed; for `stat`, the path asked for. */
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
/** Events from the moment the promise that gave it resolved; ends with `close` or the sandbox. */
export interface Watch extends AsyncIterable<WatchEvent> {
  close(): void;
}

/** For whom a file call is made, and how it is given up: the call, or its iteration, throws `cancelled`. */
interface FileCall {
  user?: string;
  signal?: AbortSignal;
}

/**
 * What a tool may hold: processes and files of one sandbox. Every path is a path inside; all work is done inside by the
 * guest, as the sandbox's user. All methods throw `invalid` for a malformed path or option, `lost` when the sandbox is
 * gone, `conflict` while it is paused, and `timeout` when the guest does not answer: `details.guest` is then `stopped`,
 * `frozen`, `silent` or `slow`.
 */
export interface Sandbox {
  readonly id: SandboxId;
  /**
   * Throws `not_found` for a missing program or cwd, `denied` for a user the spec does not allow or a program that may
   * not be executed, `busy` past the limit.
   */
  spawn(options: SpawnOptions): Promise<Process>;
  /** Takes its output over, from the first byte that is kept or these offsets. Throws `not_found`, `gone`. */
  attach(ref: ProcessRef, options?: AttachOptions): Promise<Process>;
  /** Drops what an ended process left; its ref can never be used again. Throws `busy` while it runs, `not_found`. */
  forget(ref: ProcessRef): Promise<void>;
  processes(): Promise<ProcessInfo[]>;
  /** Throws `not_found`, `denied`. */
  stat(path: string, options?: FileCall & { follow?: boolean }): Promise<FileInfo>;
  /** At most `entriesMax` (10,000); `truncated`: there were more. Throws `not_found`, `invalid` for a file. */
  list(path: string, options?: FileCall & { depth?: number; entriesMax?: number }): Promise<{ entries: FileInfo[]; truncated: boolean }>;
  mkdir(path: string, options?: FileCall & { parents?: boolean; mode?: number }): Promise<void>;
  /** Throws `exists` unless `replace`. */
  move(from: string, to: string, options?: FileCall & { replace?: boolean }): Promise<void>;
  /** Never follows a link. Throws `conflict` for a folder that is not empty unless `recursive`. */
  remove(path: string, options?: FileCall & { recursive?: boolean }): Promise<void>;
  /**
   * Streams a regular file with back-pressure. Throws before the first byte: `not_found`, `denied`, `invalid` for a
   * folder, `unsupported` for anything that is not a regular file.
   */
  readFile(path: string, options?: FileCall & { offset?: number; length?: number }): Promise<AsyncIterable<Uint8Array>>;
  /**
   * Atomic: readers see the old content or the new; a failure leaves the old and nothing else. Throws `no_space`,
   * `denied`, `not_found` (no parent).
   */
  writeFile(
    path: string,
    data: Bytes,
    options?: FileCall & { mode?: number; parents?: boolean; how?: "replace" | "append" | "create" },
  ): Promise<{ bytes: number }>;
  watch(path: string, options?: FileCall & { recursive?: boolean }): Promise<Watch>;
  /** Unpacks inside. Throws `unsafe` for any trick, `too_large`; what was unpacked until then stays. */
  tarIn(
    folder: string,
    archive: Bytes,
    options?: FileCall & { bytesMax?: number; entriesMax?: number; stripComponents?: number },
  ): Promise<{ entries: number; bytes: number }>;
  /** A pax archive of a file or folder. The iteration throws when something fails in the middle. */
  tarOut(path: string, options?: FileCall & { exclude?: readonly string[]; bytesMax?: number }): Promise<AsyncIterable<Uint8Array>>;
}

export interface ForkOptions {
  keep?: boolean;
}

/** A connection that something inside made to a port the host serves. */
export interface InboundConnection {
  /** `end()` is a half-close, `destroy()` resets. Slow readers on either side slow the other down. */
  stream: Duplex;
  /** Where it wanted to go, if carried transparently; null for one to the served port of loopback itself. */
  destination: { address: string; port: number } | null;
}

/** Who answers what programs inside send to addresses of the world, as if there were no wall. */
export interface TransparentService {
  /** TCP ports that are served, whatever the address. Nothing listens on others: a connection to them is refused. */
  ports: readonly number[];
  /** With a destination: where the program wanted to go. */
  onConnection: (connection: InboundConnection) => void;
  /** A question to UDP port 53 of any address; the answer comes from there. Null, or an error: there is none. */
  onDatagram: (question: Buffer) => Buffer | null | Promise<Buffer | null>;
}

/**
 * What the platform holds: a sandbox together with its life. Never given to a tool; see `restricted`. No method uses
 * `this`, so that a network can be laid over it.
 */
export interface OwnedSandbox extends Sandbox, AsyncDisposable {
  /** As of the last change this handle made or saw. */
  readonly info: SandboxInfo;
  /** Null for a runtime that was not given one; see `networked` in src/network. */
  readonly network: SandboxNetwork | null;
  /** Resolves when the sandbox is gone, however it came. Never rejects. */
  readonly closed: Promise<{ why: "destroyed" | "lost" }>;
  /**
   * From now on this handle works for the owner number `epoch` of the work `name`. Handles of earlier owners of the
   * same work are closed, and what they had under way at the guest has ended, before this resolves: they cannot write
   * any more. Commands live on. Throws `superseded` when a later owner was here already, `unsupported` for an older
   * guest.
   */
  fence(owner: { name: string; epoch: number }): Promise<void>;
  /** Round trip to the guest. Throws `timeout`, `lost`. */
  ping(): Promise<{ roundTripMs: number }>;
  /** When the guest was last heard of, by any frame; it beats every 5 s by itself. */
  lastHeardMs(): number;
  stats(): Promise<SandboxStats>;
  /** A connection to a port on the sandbox's loopback. Throws `unavailable` when nothing listens there. */
  connect(port: number): Promise<Duplex>;
  listeners(): Promise<{ port: number; address: string }[]>;
  /**
   * Takes the connections that programs inside make to this port of the sandbox's loopback. Whoever asks last has it;
   * when that one closes or dies, the one before has it again; while nobody has it, the guest answers that nobody
   * serves the network. Throws `unsupported` where the runtime has no network of the sandbox's own, `conflict` when a
   * program inside has the port.
   */
  serve(port: number, onConnection: (connection: InboundConnection) => void): Promise<{ close(): void }>;
  /**
   * Takes the connections and questions that programs inside send to any address at all. As with `serve`, whoever asks
   * last has the ports, so that to serve others is to ask again and close the former. Throws `unsupported` for a
   * sandbox that was not created with a transparent network, `conflict`, `busy` past 256 ports.
   */
  serveTransparent(service: TransparentService): Promise<{ close(): void }>;
  /** Freezes every process. Idempotent. Throws `unsupported`. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** Keeps the files (not the processes) as a template for later sandboxes. Throws `unsupported`, `no_space`. */
  snapshot(options?: { name?: string }): Promise<SnapshotId>;
  /**
   * A new sandbox that starts from this one's files as they are now, kept where this one is unless `keep` says
   * otherwise. Throws `unsupported`.
   */
  fork(options?: ForkOptions): Promise<OwnedSandbox>;
  /** Lets go without ending it; only for a sandbox made with `keep`. Throws `invalid` otherwise. */
  release(): Promise<void>;
  /**
   * Lets go of this handle and leaves the sandbox as it is, kept or not: for one that somebody else made. Its commands
   * go on. Idempotent.
   */
  detach(): Promise<void>;
  /** Ends every process and removes everything. Idempotent; resolves when nothing is left on the host. */
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

/** What a tool may hold of what the platform holds, at run time too: the life is not reachable from it. */
export function restricted(owned: OwnedSandbox): Sandbox {
  const narrowed: Record<string, unknown> = { id: owned.id };
  for (const name of toolMethods) narrowed[name] = (owned[name] as (...args: unknown[]) => unknown).bind(owned);
  return Object.freeze(narrowed) as unknown as Sandbox;
}
