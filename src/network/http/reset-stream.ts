import type { Duplex } from "node:stream";

/**
 * Breaks off a connection in a way that the other side cannot mistake for a clean end, because it may have received
 * only part of the data.
 */
export function resetStream(stream: Duplex & { resetAndDestroy?: () => unknown }): void {
  if (stream.destroyed) return;
  // Node resets only after all written bytes were read, which may never happen, and never after the end was written.
  const canReset = stream.resetAndDestroy !== undefined && stream.writableLength === 0 && !stream.writableEnded;
  try {
    if (canReset) stream.resetAndDestroy?.();
    else stream.destroy();
  } catch {
    // Only TCP supports a reset. TLS omits its closing message instead.
    stream.destroy();
  }
}

/** Disables Nagle's algorithm, so that small messages are sent at once. */
export function sendPromptly(stream: Duplex & { setNoDelay?: (on: boolean) => unknown }): void {
  stream.setNoDelay?.(true);
}
