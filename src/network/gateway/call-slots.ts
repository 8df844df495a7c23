import { CaissonError } from "../../contract/error.ts";

export interface CallSlots {
  /** Waits for its turn. Throws `busy` when too many wait or it took too long, `cancelled` when the signal fires. */
  take(signal: AbortSignal): Promise<Disposable>;
}

/** A bounded number of calls at once, and a bounded queue before them, first come first served. */
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
        throw new CaissonError("busy", `${limits.callsMax} calls are under way and ${limits.waitingMax} wait`, {
          hint: "Try again later.",
        });
      }
      return await waitTurn({ waiting, signal, timeoutMs: limits.waitingMs, ready: () => (running < limits.callsMax ? slot() : null) });
    },
  };
}

/**
 * Waits until `ready`, which is asked whenever `waiting` is called up, gives something. Throws `busy` after the time,
 * `cancelled` by the signal, and what `ready` throws.
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
    const cancel = () => settle(() => reject(new CaissonError("cancelled", "the call was given up while it waited")));
    const timer = setTimeout(
      () =>
        settle(() =>
          reject(new CaissonError("busy", `the call waited ${timeoutMs / 1000} s for others to end`, { hint: "Try again later." })),
        ),
      timeoutMs,
    );
    waiting.add(tryNow);
    signal.addEventListener("abort", cancel, { once: true });
    if (signal.aborted) cancel();
  });
}
