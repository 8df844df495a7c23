/** How often a log with subscribers checks for appends of other processes. Each check reads one integer. */
const OTHER_PROCESS_POLL_MS = 20;

/**
 * Tracks who waits for which stream (null: for all of them). `dataVersion` changes with every commit of another
 * connection, and never with our own.
 */
export function createWakeups(dataVersion: () => number) {
  const byStream = new Map<string | null, Set<() => void>>();
  let timer: NodeJS.Timeout | undefined;
  let seenVersion = 0;
  const wakeAll = () => {
    for (const set of [...byStream.values()]) for (const wake of [...set]) wake();
  };
  const look = () => {
    const version = dataVersion();
    if (version === seenVersion) return;
    seenVersion = version;
    wakeAll();
  };
  const stop = () => {
    clearInterval(timer);
    timer = undefined;
  };
  return {
    listen(stream: string | null, wake: () => void): () => void {
      const set = byStream.get(stream) ?? new Set();
      byStream.set(stream, set.add(wake));
      if (!timer) {
        seenVersion = dataVersion();
        timer = setInterval(look, OTHER_PROCESS_POLL_MS);
      }
      return () => {
        set.delete(wake);
        if (set.size === 0 && byStream.get(stream) === set) byStream.delete(stream);
        if (byStream.size === 0) stop();
      };
    },
    wake(streams: ReadonlySet<string>): void {
      for (const stream of [null, ...streams]) for (const wake of [...(byStream.get(stream) ?? [])]) wake();
    },
    close(): void {
      stop();
      wakeAll();
    },
  };
}
