import { hostname } from "node:os";
import { jsonOrNull } from "../../lib/failures.ts";
import type { Store } from "../../sandbox/store.ts";
import { RunQueue, type RunQueueOptions } from "./run-queue.ts";
import { createSandboxRoom } from "./sandbox-room.ts";
import type { QueueBounds } from "./schedule.ts";

/** The queue of a process that may become a station. */
export interface StationQueue extends AsyncDisposable {
  /** Null if this process is not a station. */
  queue(): RunQueue | null;
  /** Makes this process a station: its runs wait for their turn, and it continues runs that other processes left. */
  serve(bounds: QueueBounds): RunQueue;
  /**
   * Drives a run in this process, in the background; in a station, as soon as there is room. Does nothing if this
   * process drives it already.
   */
  drive(run: string): void;
  /** Reports a change to a queued run. */
  refresh(run: string): Promise<void>;
}

export function createStationQueue(
  options: Pick<RunQueueOptions, "log" | "drives" | "crashpoint" | "model" | "holderGone"> & {
    stateDir: string;
    store: Store;
    /** The name of this process as a lease holder. */
    holder: string;
    notice: RunQueueOptions["notice"] | undefined;
  },
): StationQueue {
  const { holder, notice = () => {}, drives } = options;
  const isNeighbour = (other: string) => other !== holder && (jsonOrNull(other) as { host?: unknown } | null)?.host === hostname();
  let queue: RunQueue | null = null;
  return {
    queue: () => queue,
    serve(bounds) {
      queue = new RunQueue({ ...options, bounds, notice, isNeighbour, room: createSandboxRoom(options) });
      return queue;
    },
    drive(run) {
      if (queue === null) drives.begin(run, {});
      else
        void queue
          .resume(run, { by: "station", why: "adoption" })
          .catch((error: Error) => notice(`${run} was not continued: ${error.message}`));
    },
    refresh: async (run) => await queue?.refresh(run),
    async [Symbol.asyncDispose]() {
      await queue?.close();
      await drives[Symbol.asyncDispose]();
    },
  };
}
