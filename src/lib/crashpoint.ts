/** Called at every durable write and around every effect. Does nothing unless a test requested a crash there. */
export interface Crashpoint {
  (name: string): void;
  /** Called within a turn of the event loop, which a test can block indefinitely. */
  readonly turn?: (name: string) => void;
}

export const noCrash: Crashpoint = () => undefined;

/**
 * Creates a crash point for tests. `NAME#N` kills the process with SIGKILL, as a power cut would, the Nth time it
 * reaches NAME. `hold NAME#N` blocks the event loop instead, in the Nth turn with that name. `onPoint` receives each
 * point that is passed, so a test can learn where to crash.
 */
export function createCrashpoint(options: { at?: string; onPoint?: (name: string) => void }): Crashpoint {
  if (options.at === undefined && options.onPoint === undefined) return noCrash;
  const [wanted = "", count = "1"] = (options.at ?? "").split("#");
  let left = Number(count);
  const isThere = (name: string) => {
    if (name !== wanted) return false;
    left -= 1;
    return left === 0;
  };
  const crash = (name: string) => {
    options.onPoint?.(name);
    if (isThere(name)) process.kill(process.pid, "SIGKILL");
  };
  if (!wanted.startsWith("hold ")) return crash;
  const turn = (name: string) => {
    if (isThere(`hold ${name}`)) while (wanted !== "") Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_000);
  };
  return Object.assign(crash, { turn });
}
