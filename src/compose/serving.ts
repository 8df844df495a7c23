import type { Turn } from "../lib/turns.ts";
import type { LocalStation } from "../station/local-station.ts";
import type { RunQueue } from "../station/queue/run-queue.ts";
import type { QueueBounds } from "../station/queue/schedule.ts";

/** The runs of this process once it is a station. */
export interface ServedRuns {
  counts(): { atWork: number; queued: number; draining: boolean };
  /** Starts nothing more, and takes no new work. */
  drain(): void;
  /** Resolves when no run is driven. */
  idle(): Promise<void>;
  /** Opens what is not open yet, finds what waits and what others left, and begins. */
  queue(): Promise<RunQueue>;
}

/** Whether this process is a station, which has to be said before its runs are looked at for the first time. */
export interface Serving {
  readonly verbs: {
    serve(bounds: QueueBounds): ServedRuns;
    /** Pauses what took the station before this one down, before any run is taken up. */
    pausePoisoned(turn: Turn): Promise<void>;
  };
  /** To be called with what was opened. */
  opened(local: LocalStation): Promise<LocalStation>;
}

export function createServing({ open }: { open: () => Promise<LocalStation> }): Serving {
  let bounds: QueueBounds | null = null;
  let queue: RunQueue | null = null;
  let isDraining = false;
  let isOpen = false;
  let poisoned: Turn | null = null;
  const pause = async ({ log }: LocalStation, turn: Turn) => {
    await (await import("../station/poison/pause-poisoned.ts")).pausePoisoned(log, turn);
  };
  return {
    verbs: {
      serve(given) {
        bounds = given;
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
        // Where a request came first, the queue has begun: then it hears of the pause.
        if (isOpen) return await pause(await open(), turn);
        poisoned = turn;
        await open();
      },
    },
    async opened(local) {
      if (poisoned !== null) await pause(local, poisoned);
      isOpen = true;
      if (bounds === null) return local;
      queue = local.serve(bounds);
      if (isDraining) queue.drain();
      queue.start();
      return local;
    },
  };
}
