/** Returns whether the same text was reported within the window. If not, records it as reported now. */
export type OncePerWindow = (what: string) => boolean;

/** Limits events that a program can cause as often as it likes. Forgets the oldest texts first. */
export function createOncePerWindow({ windowMs, differentMax }: { windowMs: number; differentMax: number }): OncePerWindow {
  const toldAtMs = new Map<string, number>();
  return (what) => {
    const nowMs = performance.now();
    const lastMs = toldAtMs.get(what);
    if (lastMs !== undefined && nowMs - lastMs < windowMs) return true;
    toldAtMs.delete(what);
    toldAtMs.set(what, nowMs);
    for (const oldest of toldAtMs.keys()) {
      if (toldAtMs.size <= differentMax) break;
      toldAtMs.delete(oldest);
    }
    return false;
  };
}
