import type { Duplex } from "node:stream";

/**
 * Breaks a connection off so that the other side does not take it for a proper end: what it received may be a part
 * only.
 */
export function resetStream(stream: Duplex & { resetAndDestroy?: () => unknown }): void {
  if (stream.destroyed) return;
  // Node resets only after what was written has been read, which may never be; and never once the end was written.
  const canReset = stream.resetAndDestroy !== undefined && stream.writableLength === 0 && !stream.writableEnded;
  try {
    if (canReset) stream.resetAndDestroy?.();
    else stream.destroy();
  } catch {
    // Only TCP knows a reset; TLS misses its closing message instead.
    stream.destroy();
  }
}

/** Small messages go out at once. */
export function sendPromptly(stream: Duplex & { setNoDelay?: (on: boolean) => unknown }): void {
  stream.setNoDelay?.(true);
}
