/** How often a token is looked at while a request that was made with it goes on. */
const LOOK_MS = 500;

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
  begin(options: { gone: AbortSignal; stillValid?: () => Promise<boolean> }): RequestLife;
  count(): number;
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
    begin({ gone, stillValid }) {
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
          open.delete(entry);
          if (open.size > 0) return;
          clearTimeout(timer);
          timer = undefined;
          waiting.resolve();
        },
      };
    },
    count: () => open.size,
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
