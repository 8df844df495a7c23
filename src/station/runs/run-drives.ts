import { CaissonError } from "../../contract/error/error.ts";
import { ignore } from "../../lib/failures.ts";
import type { DriveRun, DriveRunOptions } from "./runs.ts";

export interface RunDrives extends AsyncDisposable {
  /**
   * Drives a run until it ends, or the signal or the disposal of this object releases it. Does nothing if this process
   * drives it already.
   */
  begin(run: string, options: Partial<DriveRunOptions>): void;
  /** Settles as the latest drive of a run in this process does. Undefined before the first drive. */
  outcome(run: string): Promise<void> | undefined;
}

/** Manages the runs that this process drives in the background. */
export function createRunDrives(options: { drive: DriveRun }): RunDrives {
  const releaseController = new AbortController();
  /** Failed drives stay, for callers that ask later why the run did not continue. */
  const drives = new Map<string, { settled: Promise<void>; isActive: boolean }>();
  return {
    begin(run, { signal, ...rest }) {
      if (drives.get(run)?.isActive === true) return;
      const signals = signal === undefined ? releaseController.signal : AbortSignal.any([releaseController.signal, signal]);
      const driving = options.drive(run, { signal: signals, ...rest });
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
      void ignore(drive.settled, "callers that wait for the run await it");
    },
    outcome: (run) => drives.get(run)?.settled,
    async [Symbol.asyncDispose]() {
      releaseController.abort(new CaissonError("cancelled", "the station was closed"));
      await Promise.allSettled([...drives.values()].map(({ settled }) => settled));
    },
  };
}
