import { setTimeout as delay } from "node:timers/promises";
import { ignore } from "../../lib/failures.ts";

/**
 * Sweeps at intervals for leftovers of dead processes and of commands that worked beside a station. Reports a failed
 * sweep and continues. Resolves when the signal fires.
 */
export async function sweepRegularly(
  sweep: () => Promise<void>,
  { everyMs, onDefect, signal }: { everyMs: number; onDefect: (error: unknown) => void; signal: AbortSignal },
): Promise<void> {
  for (;;) {
    await ignore(delay(everyMs, undefined, { signal, ref: false }), "the loop checks the signal");
    if (signal.aborted) return;
    await sweep().catch(onDefect);
  }
}
