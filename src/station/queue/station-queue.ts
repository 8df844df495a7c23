import { hostname } from "node:os";
import { jsonOrNull } from "../../lib/json-or-null.ts";
import type { Store } from "../../sandbox/store.ts";
import { RunQueue, type RunQueueOptions } from "./run-queue.ts";
import { createSandboxRoom } from "./sandbox-room.ts";
import type { QueueBounds } from "./schedule.ts";

/** The queue of a process once it is a station, and what that changes. */
export interface StationQueue extends AsyncDisposable {
  /** Null: it is none. */
  queue(): RunQueue | null;
  /** From now on this process is a station: what it drives waits for its turn, and it goes on with what others left. */
  serve(bounds: QueueBounds): RunQueue;
  /**
   * Drives a run in this process, beside whatever else it does; in a station, when there is room. One that is driven
   * here already is left alone.
   */
  drive(run: string): void;
}

export function createStationQueue(
  options: Pick<RunQueueOptions, "log" | "drives" | "crashpoint" | "model" | "ownerGone"> & {
    stateDir: string;
    store: Store;
    /** This process, as the holder of a lease. */
    owner: string;
    notice: RunQueueOptions["notice"] | undefined;
  },
): StationQueue {
  const { owner, notice = () => {}, drives } = options;
  const isNeighbour = (other: string) => other !== owner && (jsonOrNull(other) as { host?: unknown } | null)?.host === hostname();
  let queue: RunQueue | null = null;
  return {
    queue: () => queue,
    serve(bounds) {
      queue = new RunQueue({ ...options, bounds, notice, isNeighbour, room: createSandboxRoom(options) });
      return queue;
    },
    drive(run) {
      if (queue === null) drives.begin(run, {});
      else void queue.goOn(run, { by: "station", why: "adoption" }).catch((error: Error) => notice(`${run} is left: ${error.message}`));
    },
    async [Symbol.asyncDispose]() {
      await queue?.close();
      await drives[Symbol.asyncDispose]();
    },
  };
}
