import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import type { Socket } from "node:net";
import { extname, join } from "node:path";
import { ignore } from "../../lib/failures.ts";
import type { StationStatus } from "../../verbs/station-routes.ts";

/** The interval of the station's beat. */
const BEAT_MS = 1_000;
/**
 * A station that ends soon after its start needs no guard, and a guard that fails at once is not restarted in a tight
 * loop.
 */
const START_AFTER_MS = 2_000;
const CERTIFICATE_EVERY_MS = 10 * 60_000;
/** The number of recently admitted tokens, which may request the status while no token can be looked up. */
const TOKENS_MAX = 1_000;
const PROGRAM = join(import.meta.dirname, `stall-guard-main${extname(import.meta.filename)}`);
/** Node accepts one connection per handle in a turn of the event loop. */
const COPIES = 7;
/** The guard serves a few short answers, so it should use as little memory as Node can. */
const FLAGS = ["--no-warnings", "--title=caisson-stall-guard", "--max-old-space-size=32", "--max-semi-space-size=1"];

/** A certificate and its key, in PEM. */
export interface GuardCertificate {
  cert: string;
  key: string;
}

/** The station sends one with every beat. The guard answers with the last. */
export interface GuardMessage {
  status: StationStatus;
  /** SHA-256 digests of tokens, in base64. */
  tokens: string[];
  tls: GuardCertificate | null;
}

/** Requests copies of the handle that is sent with it. */
export interface CopyRequest {
  copies: number;
}

/** Node's internal handle of a listening server. */
export interface ListeningHandle {
  fd: number;
  close(): void;
}

export interface StallGuard {
  /** Remembers a token that the station accepted. */
  rememberToken(secret: string): void;
  forgetToken(secret: string): void;
  /** Resolves when the guard has exited, which closes its listening descriptors. */
  end(): Promise<void>;
}

export interface GuardOptions {
  status: () => StationStatus;
  /** The handles that the station listens on. */
  listeners: { port: ListeningHandle; socket: ListeningHandle };
  /** Called soon after the start with copies of the port's handle, which have separate descriptors. */
  onCopy: (handle: ListeningHandle) => void;
  certificate: (() => Promise<GuardCertificate>) | null;
}

/**
 * Starts a second process that answers new connections while this one's event loop is stalled, as when SQLite waits for
 * a disk that does not respond. It inherits the listening sockets, and accepts nothing as long as the station sends
 * beats.
 */
export function startStallGuard({ status, listeners, certificate, onCopy }: GuardOptions): StallGuard {
  const tokens = new Set<string>();
  let guard: ChildProcess | null = null;
  let tls: GuardCertificate | null = null;
  let hasCopies = false;
  let starting: NodeJS.Timeout | undefined;
  let hasEnded = false;
  let isSending = false;
  const beat = () => {
    // Sends nothing more to a guard that does not read.
    if (guard?.connected !== true || isSending) return;
    isSending = true;
    guard.send({ status: status(), tokens: [...tokens], tls } satisfies GuardMessage, () => {
      isSending = false;
    });
  };
  const renew = async () => {
    // The guard keeps its certificate until a readable one replaces it.
    if (certificate !== null) tls = (await ignore(certificate(), "the guard keeps its current certificate")) ?? tls;
  };
  const start = async () => {
    await renew();
    if (hasEnded || (certificate !== null && tls === null)) return;
    guard = spawnGuard(listeners);
    isSending = false;
    guard.once("exit", startSoon).on("error", () => {});
    // The process could not be started, so there will be no exit event.
    if (guard.pid === undefined) return startSoon();
    beat();
    if (hasCopies) return;
    hasCopies = true;
    guard.on("message", (_, handle) => takeCopy(handle as unknown as ListeningHandle | undefined));
    guard.send({ copies: COPIES } satisfies CopyRequest, listeners.port as unknown as Socket);
  };
  const takeCopy = (handle: ListeningHandle | undefined) => {
    if (hasEnded) handle?.close();
    else if (handle !== undefined) onCopy(handle);
  };
  const startSoon = () => {
    guard = null;
    if (!hasEnded) starting = setTimeout(() => void start(), START_AFTER_MS).unref();
  };
  startSoon();
  const timers = [setInterval(beat, BEAT_MS).unref(), setInterval(() => void renew(), CERTIFICATE_EVERY_MS).unref()];
  return {
    rememberToken(secret) {
      const digest = digestOf(secret);
      if (tokens.has(digest)) return;
      if (tokens.size >= TOKENS_MAX) tokens.delete(tokens.values().next().value as string);
      tokens.add(digest);
      // The very next call may be the one that stalls.
      beat();
    },
    forgetToken(secret) {
      if (tokens.delete(digestOf(secret))) beat();
    },
    async end() {
      hasEnded = true;
      clearTimeout(starting);
      for (const timer of timers) clearInterval(timer);
      if (guard === null || guard.exitCode !== null || guard.signalCode !== null) return;
      const exited = once(guard, "exit");
      guard.kill("SIGKILL");
      await exited;
    },
  };
}

function spawnGuard({ port, socket }: GuardOptions["listeners"]): ChildProcess {
  const stdio = ["ignore", "ignore", "ignore", port.fd, socket.fd, "ipc"] as const;
  const guard = spawn(process.execPath, [...FLAGS, PROGRAM, String(process.pid)], { env: {}, stdio: [...stdio] });
  // The guard must not keep the station alive.
  guard.unref();
  guard.channel?.unref();
  return guard;
}

const digestOf = (secret: string) => createHash("sha256").update(secret).digest("base64");
