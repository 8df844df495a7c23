import { setImmediate as nextTurn } from "node:timers/promises";

/** The longest that work may hold the event loop at a time while other work waits. */
const SLICE_MS = 10;

/**
 * Creates a function to await between the pieces of long work. It yields to the event loop whenever the work has held
 * it for long enough, and resolves to how long the work itself has taken so far, excluding pauses.
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
