/** Called at every durable write and around every effect. Does nothing unless a test asked for a crash there. */
export type Crashpoint = (name: string) => void;

export const noCrash: Crashpoint = () => undefined;

/**
 * `NAME#N` kills the process with SIGKILL, as a power cut would, the Nth time it comes to NAME. `onPoint` hears of each
 * point that is passed, which is how a test learns where it can crash.
 */
export function createCrashpoint(options: { at?: string; onPoint?: (name: string) => void }): Crashpoint {
  if (options.at === undefined && options.onPoint === undefined) return noCrash;
  const [wanted = "", count = "1"] = (options.at ?? "").split("#");
  let left = Number(count);
  return (name) => {
    options.onPoint?.(name);
    if (name !== wanted) return;
    left -= 1;
    if (left === 0) process.kill(process.pid, "SIGKILL");
  };
}
