import { setImmediate as nextTurn } from "node:timers/promises";

/** Work that other work waits behind holds the event loop for no longer than this at a time. */
const SLICE_MS = 10;

/**
 * To be awaited between the pieces of long work: gives the event loop a turn once the work has held it long enough.
 * Resolves with how long the work itself has taken so far, without its pauses.
 */
export function createPauses(): () => Promise<number> {
  let since = performance.now();
  let workedMs = 0;
  return async () => {
    const sliceMs = performance.now() - since;
    if (sliceMs < SLICE_MS) return workedMs + sliceMs;
    workedMs += sliceMs;
    await nextTurn();
    since = performance.now();
    return workedMs;
  };
}
