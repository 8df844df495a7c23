import type { Duplex } from "node:stream";

/** Breaks a connection off so that the other side does not take it for a proper end: what it received may be a part only. */
export function resetStream(stream: Duplex & { resetAndDestroy?: () => unknown }): void {
  if (stream.destroyed) return;
  try {
    if (stream.resetAndDestroy === undefined) stream.destroy();
    else stream.resetAndDestroy();
  } catch {
    // Only TCP knows a reset; TLS misses its closing message instead.
    stream.destroy();
  }
}

/** Small messages go out at once. */
export function sendPromptly(stream: Duplex & { setNoDelay?: (on: boolean) => unknown }): void {
  stream.setNoDelay?.(true);
}
