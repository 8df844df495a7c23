const SAMPLE_MS = 25;
/** How many samples count as recent. */
const RECENT = 8;

/** How late the event loop of this process is, measured by a timer. */
export interface LoopMonitor extends Disposable {
  /** The worst of the last 200 ms. */
  recentMs(): number;
}

/** `onSample` hears of each sample. */
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
