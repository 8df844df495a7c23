import { CaissonError } from "../contract/error/error.ts";
import { ignore } from "../lib/failures.ts";

/** How often a token is checked during its requests. */
const LOOK_MS = 500;
/** The limit for one token, so that its streams leave connections for others. */
const REQUESTS_PER_TOKEN_MAX = 400;
/** The limit for all tokens of one owner. */
const REQUESTS_PER_OWNER_MAX = 800;
const RETRY_AFTER_S = 5;

/** One request in progress. */
export interface RequestLife {
  /** Aborted when the caller disconnects or loses the right to this call, and when the server stops waiting. */
  readonly signal: AbortSignal;
  /** The same for an event stream, which ends as soon as the server starts to end. */
  readonly streamSignal: AbortSignal;
  abort(): void;
  /** Marks the request as completely answered. Idempotent. */
  end(): void;
}

/** The requests in progress, including open streams. */
export interface OpenRequests {
  /**
   * `token` is the one that admitted the request, if any. Throws `busy` for a token or an owner with too many requests
   * in progress.
   */
  begin(options: { disconnected: AbortSignal; token?: { id: string; owner: string }; stillValid?: () => Promise<boolean> }): RequestLife;
  count(): number;
  /** Whether the server has started to end. */
  isEnding(): boolean;
  endStreams(): void;
  abortAll(): void;
  /** Resolves when no request is in progress. */
  idle(): Promise<void>;
}

interface Entry {
  controller: AbortController;
  streamController: AbortController;
  stillValid: (() => Promise<boolean>) | undefined;
}

export function createOpenRequests(): OpenRequests {
  const open = new Set<Entry>();
  const perToken = new Map<string, number>();
  const perOwner = new Map<string, number>();
  let streamsEnd = false;
  let waiting = Promise.withResolvers<void>();
  let timer: NodeJS.Timeout | undefined;
  const look = async () => {
    for (const { stillValid, controller } of [...open]) {
      if (stillValid === undefined) continue;
      if ((await ignore(stillValid(), "a token that cannot be looked up is refused")) !== true) controller.abort();
    }
    timer = [...open].some((entry) => entry.stillValid) ? setTimeout(() => void look(), LOOK_MS) : undefined;
  };
  return {
    begin({ disconnected, token, stillValid }) {
      if (token !== undefined) {
        checkShare(perToken.get(token.id), REQUESTS_PER_TOKEN_MAX, "this token");
        checkShare(perOwner.get(token.owner), REQUESTS_PER_OWNER_MAX, token.owner);
        countUp(perToken, token.id);
        countUp(perOwner, token.owner);
      }
      const entry: Entry = { controller: new AbortController(), streamController: new AbortController(), stillValid };
      open.add(entry);
      const abort = () => entry.controller.abort();
      entry.controller.signal.addEventListener("abort", () => entry.streamController.abort(), { once: true });
      if (disconnected.aborted) abort();
      else disconnected.addEventListener("abort", abort, { once: true });
      if (streamsEnd) entry.streamController.abort();
      if (stillValid !== undefined) timer ??= setTimeout(() => void look(), LOOK_MS);
      return {
        signal: entry.controller.signal,
        streamSignal: entry.streamController.signal,
        abort,
        end() {
          disconnected.removeEventListener("abort", abort);
          if (open.delete(entry) && token !== undefined) {
            countDown(perToken, token.id);
            countDown(perOwner, token.owner);
          }
          if (open.size > 0) return;
          clearTimeout(timer);
          timer = undefined;
          waiting.resolve();
        },
      };
    },
    count: () => open.size,
    isEnding: () => streamsEnd,
    endStreams() {
      streamsEnd = true;
      for (const { streamController } of open) streamController.abort();
    },
    abortAll() {
      for (const { controller } of open) controller.abort();
    },
    async idle() {
      while (open.size > 0) {
        waiting = Promise.withResolvers();
        await waiting.promise;
      }
    },
  };
}

function checkShare(count = 0, max: number, whose: string): void {
  if (count < max) return;
  throw new CaissonError("busy", `${count} requests of ${whose} are already in progress`, {
    hint: `Close some of the streams, or try again in ${RETRY_AFTER_S} s.`,
    details: { retryAfterSeconds: RETRY_AFTER_S },
  });
}

function countUp(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

function countDown(counts: Map<string, number>, key: string): void {
  const left = (counts.get(key) ?? 0) - 1;
  if (left > 0) counts.set(key, left);
  else counts.delete(key);
}
