/** Whether the same was said within the window; if not, it counts as said now. */
export type OncePerWindow = (what: string) => boolean;

/** For events that a program can cause as often as it likes. Of the things said, the oldest are forgotten first. */
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
