import { LOCAL_OWNER } from "../../contract/token/owner.ts";
import type { Store } from "../../sandbox/store.ts";
import type { SandboxVerbs } from "../../verbs/sandboxes.ts";
import { checkMemory, noRoomForSandbox } from "./admission.ts";
import type { RunQueue } from "./run-queue.ts";
import { promisedTo, roomFor } from "./sandbox-room.ts";
import { lacking, type Room } from "./schedule.ts";

/** A request for a sandbox. */
interface RoomRequest {
  memoryBytes?: number | undefined;
  owner: string;
}

/** The methods of the run queue that we need. */
type BoundingQueue = Pick<RunQueue, "bounds" | "checkOpen" | "readTakenRoom">;

/**
 * Wraps sandbox verbs to enforce the station's bounds: refuses a sandbox with `busy` if there are too many, or if it
 * needs more memory than remains. One owner cannot take all of them, since kept sandboxes never end unless removed.
 */
export function boundedSandboxes(
  sandboxes: SandboxVerbs,
  { queue, store }: { queue: () => Promise<BoundingQueue>; store: Pick<Store, "read"> },
): SandboxVerbs {
  /** Sandboxes that are being created here and may not be on disk yet. */
  const coming = new Set<Room & { owner: string; promisedBytes: number }>();
  const within = async <Result>({ memoryBytes, owner }: RoomRequest, make: () => Promise<Result>): Promise<Result> => {
    const { bounds, ...rest } = await roomIn(await queue());
    checkMemory(memoryBytes, bounds);
    const needs = { ...roomFor(memoryBytes), owner, promisedBytes: promisedTo(memoryBytes) };
    const takenRoom = [...coming].reduce<Room>((sum, each) => sumOfRooms(sum, each), rest.taken);
    const lacks = lacking(needs, { taken: takenRoom, bounds });
    if (lacks !== null) throw noRoomForSandbox(lacks, bounds);
    const ownComing = [...coming].filter((each) => each.owner === owner);
    if (ownComing.length + (rest.taken.byOwner.get(owner) ?? 0) >= bounds.sandboxesPerOwnerMax) throw noRoomForSandbox("owner", bounds);
    const sumPromised = (of: Iterable<{ promisedBytes: number }>) => [...of].reduce((sum, each) => sum + each.promisedBytes, 0);
    const own = sumPromised([needs, ...ownComing]) + (rest.taken.promisedBytes.get(owner) ?? 0);
    const all = [...rest.taken.promisedBytes.values()].reduce((sum, bytes) => sum + bytes, sumPromised([needs, ...coming]));
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
    // A fork gets what its original requested.
    async fork(word, request) {
      const { id } = await sandboxes.get(word);
      const { spec: config } = await store.read(id);
      return await within({ ...config.limits, owner: config.owner ?? LOCAL_OWNER }, () => sandboxes.fork(id, request));
    },
  };
}

async function roomIn(queue: BoundingQueue) {
  queue.checkOpen();
  return { taken: await queue.readTakenRoom(), bounds: queue.bounds };
}

const sumOfRooms = (a: Room, b: Room): Room => ({ sandboxes: a.sandboxes + b.sandboxes, memoryBytes: a.memoryBytes + b.memoryBytes });
