import { CaissonError } from "../../contract/error.ts";
import type { DriveRun, DriveRunOptions } from "./runs.ts";

export interface RunDrives extends AsyncDisposable {
  /**
   * Drives a run until it has ended, or the signal or this object lets it go. One that is driven here already is left
   * alone.
   */
  begin(run: string, options: Partial<DriveRunOptions>): void;
  /** Settles as the last drive of a run here did, or will. Undefined: there was none. */
  outcome(run: string): Promise<void> | undefined;
}

/** The runs that this process drives, beside whatever else it does. */
export function createRunDrives(options: { drive: DriveRun }): RunDrives {
  const letGo = new AbortController();
  /** Those that failed stay, for whoever asks later why the run did not go on. */
  const drives = new Map<string, { settled: Promise<void>; isActive: boolean }>();
  return {
    begin(run, { signal, ...asked }) {
      if (drives.get(run)?.isActive === true) return;
      const signals = signal === undefined ? letGo.signal : AbortSignal.any([letGo.signal, signal]);
      const driving = options.drive(run, { signal: signals, ...asked });
      const drive = {
        isActive: true,
        settled: driving.then(
          () => void drives.delete(run),
          (error: unknown) => {
            drive.isActive = false;
            throw error;
          },
        ),
      };
      drives.set(run, drive);
      // Whoever waits is told; nobody has to.
      drive.settled.catch(() => undefined);
    },
    outcome: (run) => drives.get(run)?.settled,
    async [Symbol.asyncDispose]() {
      letGo.abort(new CaissonError("cancelled", "the station was closed"));
      await Promise.allSettled([...drives.values()].map(({ settled }) => settled));
    },
  };
}
