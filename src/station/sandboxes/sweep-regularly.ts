import { setTimeout as delay } from "node:timers/promises";

/**
 * Sweeps now and then: what commands that worked beside a station left, or processes that died. One that fails is told
 * of, and the next is made all the same. Resolves with the signal.
 */
export async function sweepRegularly(
  sweep: () => Promise<void>,
  { everyMs, onDefect, signal }: { everyMs: number; onDefect: (error: unknown) => void; signal: AbortSignal },
): Promise<void> {
  for (;;) {
    await delay(everyMs, undefined, { signal, ref: false }).catch(() => undefined);
    if (signal.aborted) return;
    await sweep().catch(onDefect);
  }
}
