import { createHash } from "node:crypto";
import { Worker } from "node:worker_threads";
import type { StationStatus } from "../../contract/api/station-routes.ts";
import { runStallGuard } from "./stall-guard-thread.ts";

/** How often the loop shows that it turns. */
const BEAT_MS = 250;
const SNAPSHOT_BYTES_MAX = 256 * 1024;
/** Tokens that were let in lately, and may ask for the status while nothing can be looked up. */
const TOKENS_MAX = 1_000;

/** Where the words of the shared header are. */
export const guardWords = { beat: 0, isEnded: 1, version: 2, length: 3, count: 4 } as const;

/** What the guard answers with, as it was with the last beat. */
export interface GuardSnapshot {
  status: StationStatus;
  /** SHA-256 of tokens, in base64. */
  tokens: string[];
}

export interface StallGuard {
  /** A token that was let in. */
  admitted(secret: string): void;
  refused(secret: string): void;
  /** From now on nothing is answered. Before the ports are closed. */
  end(): void;
}

/**
 * Answers new connections from a second thread while the loop of this one stands still, as when SQLite waits for a disk
 * that does not answer. It shares the listening descriptors, and sleeps as long as the loop turns. It lives as long as
 * the process: to end it would close descriptors that are this thread's.
 */
export function startStallGuard({ status, listeners }: { status: () => StationStatus; listeners: GuardListener[] }): StallGuard {
  const shared = new SharedArrayBuffer(4 * guardWords.count + SNAPSHOT_BYTES_MAX);
  const words = new Int32Array(shared, 0, guardWords.count);
  const bytes = new Uint8Array(shared, 4 * guardWords.count);
  const tokens = new Set<string>();
  let known: string[] | null = null;
  const publish = () => {
    known ??= [...tokens];
    const text = new TextEncoder().encode(JSON.stringify({ status: status(), tokens: known } satisfies GuardSnapshot));
    if (text.length <= bytes.length) {
      // Odd while it is written.
      Atomics.add(words, guardWords.version, 1);
      bytes.set(text);
      Atomics.store(words, guardWords.length, text.length);
      Atomics.add(words, guardWords.version, 1);
    }
  };
  const beat = () => {
    publish();
    Atomics.add(words, guardWords.beat, 1);
    Atomics.notify(words, guardWords.beat);
  };
  beat();
  const timer = setInterval(beat, BEAT_MS).unref();
  const worker = new Worker(`(${runStallGuard.toString()})(require)`, {
    eval: true,
    workerData: { shared, listeners, words: guardWords },
    env: {},
    execArgv: [],
    stdout: false,
    stderr: false,
  });
  // A station without its guard still serves.
  worker.on("error", () => {}).unref();
  return {
    admitted(secret) {
      const digest = digestOf(secret);
      if (tokens.has(digest)) return;
      if (tokens.size >= TOKENS_MAX) tokens.delete(tokens.values().next().value as string);
      tokens.add(digest);
      known = null;
      // The very next thing may be what the loop waits for.
      publish();
    },
    refused(secret) {
      if (!tokens.delete(digestOf(secret))) return;
      known = null;
      publish();
    },
    end() {
      clearInterval(timer);
      Atomics.store(words, guardWords.isEnded, 1);
      Atomics.add(words, guardWords.beat, 1);
      Atomics.notify(words, guardWords.beat);
    },
  };
}

/** A descriptor that this process listens on. */
export interface GuardListener {
  fd: number;
  /** Whether callers need a token. */
  needsToken: boolean;
  tls: { cert: string; key: string } | null;
}

const digestOf = (secret: string) => createHash("sha256").update(secret).digest("base64");
