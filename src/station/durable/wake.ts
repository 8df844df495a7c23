/** The longest timer: if the clock is changed, the due time is checked again after this long. */
const TIMER_MS_MAX = 15_000;

/** Lets a loop sleep until it is woken, or a time comes. */
export interface Wake {
  set(): void;
  /** Resolves when the loop first sleeps. */
  readonly waited: Promise<void>;
  /** Resolves if `set` was called since the last time, or at the due time, and may resolve earlier. */
  until(due: Date | undefined, now: () => Date): Promise<void>;
}

export function createWake(): Wake {
  let isSet = false;
  let resolveWait: (() => void) | undefined;
  const first = Promise.withResolvers<void>();
  return {
    waited: first.promise,
    set() {
      isSet = true;
      resolveWait?.();
    },
    async until(due, now) {
      const ms = due === undefined ? null : Math.min(Math.max(due.getTime() - now().getTime(), 0), TIMER_MS_MAX);
      if (!isSet && ms !== 0) {
        first.resolve();
        let timer: NodeJS.Timeout | undefined;
        await new Promise<void>((resolve) => {
          resolveWait = resolve;
          if (ms !== null) timer = setTimeout(resolve, ms);
        });
        clearTimeout(timer);
      }
      resolveWait = undefined;
      isSet = false;
    },
  };
}
