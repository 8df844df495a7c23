import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { extname, join } from "node:path";
import type { StationStatus } from "../../contract/api/station-routes.ts";

/** How often the loop shows that it turns. */
const BEAT_MS = 1_000;
/** A station that ends soon after its start needs none; a guard that fails at once is not started in a circle. */
const START_AFTER_MS = 2_000;
const CERTIFICATE_EVERY_MS = 10 * 60_000;
/** Tokens that were let in lately, and may ask for the status while nothing can be looked up. */
const TOKENS_MAX = 1_000;
const PROGRAM = join(import.meta.dirname, `stall-guard-main${extname(import.meta.filename)}`);
/** It serves a few short answers, and should cost as little as Node can. */
const FLAGS = ["--no-warnings", "--title=caisson-stall-guard", "--max-old-space-size=32", "--max-semi-space-size=1"];

/** A certificate in PEM. */
export interface GuardCertificate {
  cert: string;
  key: string;
}

/** The guard gets one with every beat, and answers with the last. */
export interface GuardMessage {
  status: StationStatus;
  /** SHA-256 of tokens, in base64. */
  tokens: string[];
  tls: GuardCertificate | null;
}

export interface StallGuard {
  /** Remembers a token that the station accepted. */
  admitted(secret: string): void;
  refused(secret: string): void;
  /** Resolves when the guard has exited, and its listening descriptors are closed. */
  end(): Promise<void>;
}

export interface GuardOptions {
  status: () => StationStatus;
  /** Descriptors that the station listens on. */
  descriptors: { port: number; socket: number };
  certificate: (() => Promise<GuardCertificate>) | null;
}

/**
 * A second process answers new connections while the loop of this one stands still, as when SQLite waits for a disk that
 * does not answer. It inherits the listening sockets, and accepts nothing as long as the loop beats.
 */
export function startStallGuard({ status, descriptors, certificate }: GuardOptions): StallGuard {
  const tokens = new Set<string>();
  let process: ChildProcess | null = null;
  let tls: GuardCertificate | null = null;
  let starting: NodeJS.Timeout | undefined;
  let hasEnded = false;
  const beat = () => {
    const input = process?.stdin;
    // A guard that does not read is not sent more.
    if (input?.writable !== true || input.writableNeedDrain) return;
    input.write(`${JSON.stringify({ status: status(), tokens: [...tokens], tls } satisfies GuardMessage)}\n`);
  };
  const renew = async () => {
    // The guard keeps its certificate until a readable one replaces it.
    tls = (await certificate?.().catch(() => null)) ?? tls;
  };
  const start = async () => {
    await renew();
    if (hasEnded || (certificate !== null && tls === null)) return;
    process = spawnGuard(descriptors);
    process.once("exit", startSoon).once("error", () => {});
    beat();
  };
  const startSoon = () => {
    process = null;
    if (!hasEnded) starting = setTimeout(() => void start(), START_AFTER_MS).unref();
  };
  startSoon();
  const timers = [setInterval(beat, BEAT_MS).unref(), setInterval(() => void renew(), CERTIFICATE_EVERY_MS).unref()];
  return {
    admitted(secret) {
      const digest = digestOf(secret);
      if (tokens.has(digest)) return;
      if (tokens.size >= TOKENS_MAX) tokens.delete(tokens.values().next().value as string);
      tokens.add(digest);
      // The very next call may be the one that stalls.
      beat();
    },
    refused(secret) {
      if (tokens.delete(digestOf(secret))) beat();
    },
    async end() {
      hasEnded = true;
      clearTimeout(starting);
      for (const timer of timers) clearInterval(timer);
      const guard = process;
      if (guard === null || guard.exitCode !== null || guard.signalCode !== null) return;
      const exited = once(guard, "exit");
      guard.kill("SIGKILL");
      await exited;
    },
  };
}

function spawnGuard({ port, socket }: GuardOptions["descriptors"]): ChildProcess {
  const guard = spawn(process.execPath, [...FLAGS, PROGRAM], { env: {}, stdio: ["pipe", "ignore", "ignore", port, socket] });
  guard.stdin?.on("error", () => {});
  // The station must be able to end by itself.
  guard.unref();
  (guard.stdin as unknown as { unref(): void } | null)?.unref();
  return guard;
}

const digestOf = (secret: string) => createHash("sha256").update(secret).digest("base64");
