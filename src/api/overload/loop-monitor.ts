const SAMPLE_MS = 25;
/** How many samples count as recent. */
const RECENT = 8;

/** Measures the delay of this process's event loop with a timer. */
export interface LoopMonitor extends Disposable {
  /** The worst delay of the last 200 ms. */
  recentMs(): number;
}

/** `onSample` receives each sample. */
export function createLoopMonitor({ onSample = () => {} }: { onSample?: (lateMs: number) => void } = {}): LoopMonitor {
  const recent = new Float64Array(RECENT);
  let at = 0;
  let dueMs = performance.now() + SAMPLE_MS;
  const timer = setInterval(() => {
    const now = performance.now();
    const lateMs = Math.max(0, now - dueMs);
    dueMs = now + SAMPLE_MS;
    recent[at] = lateMs;
    at = (at + 1) % RECENT;
    onSample(lateMs);
  }, SAMPLE_MS).unref();
  return {
    recentMs: () => Math.max(...recent),
    [Symbol.dispose]: () => clearInterval(timer),
  };
}
