/** A clock that is set makes a timer wrong; so none is longer than this, and the time is looked at again. */
const TIMER_MS_MAX = 15_000;

/** Lets a loop sleep until somebody wakes it, or a time comes. */
export interface Wake {
  set(): void;
  /** Resolves with the first waiting. */
  readonly waited: Promise<void>;
  /** Resolves once it was set, since the last time, or when the time has come. */
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
