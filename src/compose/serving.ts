import type { Turn } from "../lib/turns.ts";
import type { LocalStation } from "../station/local-station.ts";
import type { RunQueue } from "../station/queue/run-queue.ts";
import type { QueueBounds } from "../station/queue/schedule.ts";

/** The runs of this process while it is a station. */
export interface ServedRuns {
  counts(): { atWork: number; queued: number; draining: boolean };
  /** Stops starting runs and accepting new work. */
  drain(): void;
  /** Resolves when no run is being driven. */
  idle(): Promise<void>;
  /** Opens the runs if necessary, finds waiting and abandoned runs, and starts the queue. */
  queue(): Promise<RunQueue>;
}

/** Whether this process is a station. It must be set before the first access to its runs. */
export interface Serving {
  readonly verbs: {
    serve(bounds: QueueBounds): ServedRuns;
    /** Pauses the stream that brought down the previous station, before any run is continued. */
    pausePoisoned(turn: Turn): Promise<void>;
  };
  /** Call with the opened station. */
  opened(local: LocalStation): Promise<LocalStation>;
}

export function createServing({ open }: { open: () => Promise<LocalStation> }): Serving {
  let bounds: QueueBounds | null = null;
  let queue: RunQueue | null = null;
  let isDraining = false;
  let isOpen = false;
  let poisoned: Turn | null = null;
  const pause = async ({ core }: LocalStation, turn: Turn) => {
    await (await import("../station/poison/pause-poisoned.ts")).pausePoisoned(core.log, turn);
  };
  return {
    verbs: {
      serve(queueBounds) {
        bounds = queueBounds;
        return {
          counts: () => queue?.counts() ?? { atWork: 0, queued: 0, draining: isDraining },
          drain() {
            isDraining = true;
            queue?.drain();
          },
          idle: async () => await queue?.idle(),
          async queue() {
            await open();
            return queue as RunQueue;
          },
        };
      },
      async pausePoisoned(turn) {
        // If a request opened the station first, its queue is running and learns of the pause.
        if (isOpen) return await pause(await open(), turn);
        poisoned = turn;
        await open();
      },
    },
    async opened(local) {
      if (poisoned !== null) await pause(local, poisoned);
      isOpen = true;
      if (bounds === null) return local;
      queue = local.queue.serve(bounds);
      if (isDraining) queue.drain();
      queue.start();
      return local;
    },
  };
}
