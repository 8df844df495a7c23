import type { Store } from "../../sandbox/store.ts";
import type { SandboxVerbs } from "../sandboxes/verbs.ts";
import { checkMemory, noRoomForSandbox } from "./admission.ts";
import type { RunQueue } from "./run-queue.ts";
import { roomFor } from "./sandbox-room.ts";
import { lacking, type Room } from "./schedule.ts";

/** What is asked of the station's queue. */
type BoundingQueue = Pick<RunQueue, "bounds" | "checkOpen" | "taken">;

/**
 * The same sandboxes within the station's bounds: one too many, or too large for what is left, is refused with `busy`.
 */
export function boundedSandboxes(
  sandboxes: SandboxVerbs,
  { queue, store }: { queue: () => Promise<BoundingQueue>; store: Pick<Store, "read"> },
): SandboxVerbs {
  /** Of sandboxes that are being made here, and may not be seen yet. */
  const coming = new Set<Room>();
  const within = async <Made>(memoryBytes: number | undefined, make: () => Promise<Made>): Promise<Made> => {
    const { bounds, ...rest } = await roomIn(await queue());
    checkMemory(memoryBytes, bounds);
    const needs = roomFor(memoryBytes);
    const taken = [...coming].reduce((sum, each) => added(sum, each), rest.taken);
    const lacks = lacking(needs, { taken, bounds });
    if (lacks !== null) throw noRoomForSandbox(lacks, bounds);
    coming.add(needs);
    try {
      return await make();
    } finally {
      coming.delete(needs);
    }
  };
  return {
    ...sandboxes,
    create: (request, asked) => within(request.spec.limits.memoryBytes, () => sandboxes.create(request, asked)),
    // It gets what the first one asked for.
    async fork(word) {
      const { id } = await sandboxes.get(word);
      const { spec } = await store.read(id);
      return await within(spec.limits.memoryBytes, () => sandboxes.fork(id));
    },
  };
}

async function roomIn(queue: BoundingQueue) {
  queue.checkOpen();
  return { taken: await queue.taken(), bounds: queue.bounds };
}

const added = (a: Room, b: Room): Room => ({ sandboxes: a.sandboxes + b.sandboxes, memoryBytes: a.memoryBytes + b.memoryBytes });
