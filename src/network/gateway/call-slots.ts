import { CaissonError } from "../../contract/error/error.ts";

export interface CallSlots {
  /**
   * Waits for a slot. Throws `busy` if too many calls wait or the wait was too long, `cancelled` if the signal fires.
   */
  take(signal: AbortSignal): Promise<Disposable>;
}

/** Limits the calls in progress. Further ones wait in a bounded queue, first come, first served. */
export function createCallSlots(limits: { callsMax: number; waitingMax: number; waitingMs: number }): CallSlots {
  let running = 0;
  const waiting = new Set<() => void>();
  const slot = (): Disposable => {
    running += 1;
    let held = true;
    return {
      [Symbol.dispose]() {
        if (!held) return;
        held = false;
        running -= 1;
        const [next] = waiting;
        next?.();
      },
    };
  };
  return {
    async take(signal) {
      if (running < limits.callsMax && waiting.size === 0) return slot();
      if (waiting.size >= limits.waitingMax) {
        throw new CaissonError("busy", `${limits.callsMax} calls are in progress and ${limits.waitingMax} are waiting`, {
          hint: "Try again later.",
        });
      }
      return await waitTurn({ waiting, signal, timeoutMs: limits.waitingMs, ready: () => (running < limits.callsMax ? slot() : null) });
    },
  };
}

/**
 * Waits until `ready` returns a value. Adds a function to `waiting`; each call of that function tries `ready` again.
 * Throws `busy` after the time limit, `cancelled` if the signal fires, and the errors of `ready`.
 */
export function waitTurn<T>(options: {
  waiting: Set<() => void>;
  signal: AbortSignal;
  timeoutMs: number;
  ready: () => T | null;
}): Promise<T> {
  const { waiting, signal, timeoutMs, ready } = options;
  return new Promise<T>((resolve, reject) => {
    const settle = (finish: () => void) => {
      waiting.delete(tryNow);
      clearTimeout(timer);
      signal.removeEventListener("abort", cancel);
      finish();
    };
    const tryNow = () => {
      try {
        const got = ready();
        if (got !== null) settle(() => resolve(got));
      } catch (error) {
        settle(() => reject(error));
      }
    };
    const cancel = () => settle(() => reject(new CaissonError("cancelled", "the call was cancelled while it waited")));
    const timer = setTimeout(
      () =>
        settle(() =>
          reject(new CaissonError("busy", `the call waited ${timeoutMs / 1000} s for other calls to finish`, { hint: "Try again later." })),
        ),
      timeoutMs,
    );
    waiting.add(tryNow);
    signal.addEventListener("abort", cancel, { once: true });
    if (signal.aborted) cancel();
  });
}
