/** Maximum number of consecutive failures, and the pauses between attempts. */
export const ATTEMPTS_MAX = 10;
const PAUSE_FIRST_MS = 100;
const PAUSE_MAX_MS = 5_000;

/** Waits after this many failures (1 or more), longer each time, until the signal aborts. */
export function pauseBefore(attempt: number, signal: AbortSignal | undefined): Promise<void> {
  return pause(Math.min(PAUSE_FIRST_MS * 2 ** (attempt - 1), PAUSE_MAX_MS), signal);
}

export function pause(pauseMs: number, signal: AbortSignal | undefined): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, pauseMs);
  const stop = () => {
    clearTimeout(timer);
    resolve();
  };
  if (signal?.aborted) stop();
  else signal?.addEventListener("abort", stop, { once: true });
  return promise.finally(() => signal?.removeEventListener("abort", stop));
}
