/** The longest timer: if the clock is changed, the due time is checked again after this long. */
const TIMER_MS_MAX = 15_000;

/** The next due times of waiting jobs, with one timer for all. */
export interface DueTimes extends Disposable {
  /** Null removes the due time. */
  set(stream: string, due: Date | null): void;
}

/**
 * Keeps the `max` earliest due times. If it had to leave out later ones, it calls `lookAgain` once all kept times have
 * passed: the log has the rest.
 */
export function createDueTimes(options: {
  max: number;
  now: () => Date;
  onDue: (stream: string) => void;
  lookAgain: () => void;
}): DueTimes {
  const times = new Map<string, number>();
  let isPartial = false;
  let timer: NodeJS.Timeout | undefined;
  let nextMs = Number.POSITIVE_INFINITY;

  const arm = () => {
    clearTimeout(timer);
    timer = undefined;
    if (nextMs === Number.POSITIVE_INFINITY) return;
    timer = setTimeout(tick, Math.min(Math.max(nextMs - options.now().getTime(), 0), TIMER_MS_MAX));
    timer.unref();
  };
  const tick = () => {
    const nowMs = options.now().getTime();
    const due = [...times].filter(([, ms]) => ms <= nowMs).map(([stream]) => stream);
    for (const stream of due) times.delete(stream);
    nextMs = soonest(times);
    arm();
    for (const stream of due) options.onDue(stream);
    if (times.size > 0 || !isPartial) return;
    isPartial = false;
    options.lookAgain();
  };
  const leaveOutLatest = () => {
    if (times.size <= options.max) return;
    isPartial = true;
    // Drops a tenth at a time, so that not every new time sorts all of them.
    const entries = [...times].sort(([, a], [, b]) => a - b).slice(0, Math.ceil(options.max * 0.9));
    times.clear();
    for (const [stream, ms] of entries) times.set(stream, ms);
  };
  return {
    set(stream, due) {
      if (due === null) return void times.delete(stream);
      times.set(stream, due.getTime());
      leaveOutLatest();
      if (due.getTime() >= nextMs) return;
      nextMs = due.getTime();
      arm();
    },
    [Symbol.dispose]() {
      clearTimeout(timer);
    },
  };
}

/** Returns infinity if the map is empty. */
function soonest(times: ReadonlyMap<string, number>): number {
  let least = Number.POSITIVE_INFINITY;
  for (const ms of times.values()) if (ms < least) least = ms;
  return least;
}
