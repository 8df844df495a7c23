import { CaissonError } from "../contract/error.ts";

/** How often a token is looked at while a request that was made with it goes on. */
const LOOK_MS = 500;
/** Of one token, so that its streams leave connections for the others. */
const REQUESTS_PER_TOKEN_MAX = 400;
/** Of all tokens of an owner together. */
const REQUESTS_PER_OWNER_MAX = 800;
const RETRY_AFTER_S = 5;

/** One request that is under way. */
export interface RequestLife {
  /** Aborted when its caller has gone away or may do this no longer, and when the server does not wait any more. */
  readonly signal: AbortSignal;
  /** The same for a stream of events, which ends as soon as the server begins to end. */
  readonly streamSignal: AbortSignal;
  abort(): void;
  /** It was answered to its end. Idempotent. */
  end(): void;
}

/** Every request that is under way, streams that are open among them. */
export interface OpenRequests {
  /** `token`: by which it was let in, if by one. Throws `busy` for a token or an owner with too many under way. */
  begin(options: { gone: AbortSignal; token?: { id: string; owner: string }; stillValid?: () => Promise<boolean> }): RequestLife;
  count(): number;
  /** Whether the server has begun to end. */
  isEnding(): boolean;
  endStreams(): void;
  abortAll(): void;
  /** Resolves when none is under way. */
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
      // What cannot be looked up may not go on.
      if (stillValid !== undefined && !(await stillValid().catch(() => false))) controller.abort();
    }
    timer = [...open].some((entry) => entry.stillValid) ? setTimeout(() => void look(), LOOK_MS) : undefined;
  };
  return {
    begin({ gone, token, stillValid }) {
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
      if (gone.aborted) abort();
      else gone.addEventListener("abort", abort, { once: true });
      if (streamsEnd) entry.streamController.abort();
      if (stillValid !== undefined) timer ??= setTimeout(() => void look(), LOOK_MS);
      return {
        signal: entry.controller.signal,
        streamSignal: entry.streamController.signal,
        abort,
        end() {
          gone.removeEventListener("abort", abort);
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
  throw new CaissonError("busy", `${count} requests of ${whose} are under way already`, {
    hint: `End some of the streams, or try again in ${RETRY_AFTER_S} s.`,
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
