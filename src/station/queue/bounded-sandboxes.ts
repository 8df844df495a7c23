import { LOCAL_OWNER } from "../../contract/owner.ts";
import type { Store } from "../../sandbox/store.ts";
import type { SandboxVerbs } from "../sandboxes/verbs.ts";
import { checkMemory, noRoomForSandbox } from "./admission.ts";
import type { RunQueue } from "./run-queue.ts";
import { promisedTo, roomFor } from "./sandbox-room.ts";
import { lacking, type Room } from "./schedule.ts";

/** A sandbox that somebody wants. */
interface Asked {
  memoryBytes?: number | undefined;
  owner: string;
}

/** What is asked of the station's queue. */
type BoundingQueue = Pick<RunQueue, "bounds" | "checkOpen" | "taken">;

/**
 * The same sandboxes within the station's bounds: one too many, or too large for what is left, is refused with `busy`.
 * One owner alone does not take all of them, since those that are kept never go by themselves.
 */
export function boundedSandboxes(
  sandboxes: SandboxVerbs,
  { queue, store }: { queue: () => Promise<BoundingQueue>; store: Pick<Store, "read"> },
): SandboxVerbs {
  /** Of sandboxes that are being made here, and may not be seen yet. */
  const coming = new Set<Room & { owner: string; promisedBytes: number }>();
  const within = async <Made>({ memoryBytes, owner }: Asked, make: () => Promise<Made>): Promise<Made> => {
    const { bounds, ...rest } = await roomIn(await queue());
    checkMemory(memoryBytes, bounds);
    const needs = { ...roomFor(memoryBytes), owner, promisedBytes: promisedTo(memoryBytes) };
    const taken = [...coming].reduce<Room>((sum, each) => added(sum, each), rest.taken);
    const lacks = lacking(needs, { taken, bounds });
    if (lacks !== null) throw noRoomForSandbox(lacks, bounds);
    const ownComing = [...coming].filter((each) => each.owner === owner);
    if (ownComing.length + (rest.taken.byOwner.get(owner) ?? 0) >= bounds.sandboxesPerOwnerMax) throw noRoomForSandbox("owner", bounds);
    const promised = (of: Iterable<{ promisedBytes: number }>) => [...of].reduce((sum, each) => sum + each.promisedBytes, 0);
    const own = promised([needs, ...ownComing]) + (rest.taken.promisedBytes.get(owner) ?? 0);
    const all = [...rest.taken.promisedBytes.values()].reduce((sum, bytes) => sum + bytes, promised([needs, ...coming]));
    if (own > bounds.promisedBytesPerOwnerMax || all > bounds.promisedBytesMax) throw noRoomForSandbox("promised", bounds);
    coming.add(needs);
    try {
      return await make();
    } finally {
      coming.delete(needs);
    }
  };
  return {
    ...sandboxes,
    create: (request, options) =>
      within({ ...request.spec.limits, owner: options?.owner ?? LOCAL_OWNER }, () => sandboxes.create(request, options)),
    // It gets what the first one asked for.
    async fork(word) {
      const { id } = await sandboxes.get(word);
      const { spec } = await store.read(id);
      return await within({ ...spec.limits, owner: spec.owner ?? LOCAL_OWNER }, () => sandboxes.fork(id));
    },
  };
}

async function roomIn(queue: BoundingQueue) {
  queue.checkOpen();
  return { taken: await queue.taken(), bounds: queue.bounds };
}

const added = (a: Room, b: Room): Room => ({ sandboxes: a.sandboxes + b.sandboxes, memoryBytes: a.memoryBytes + b.memoryBytes });
