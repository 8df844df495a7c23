import { CaissonError } from "../../contract/error.ts";
import { showBytes } from "../../lib/quantity.ts";
import type { QueueBounds } from "./schedule.ts";

/** When those who were refused for want of room may ask again. */
const RETRY_AFTER_SECONDS = 15;
const details = { retryAfterSeconds: RETRY_AFTER_SECONDS };

/** Counts the runs that are being made, so that no more come than may wait. */
export class Admissions {
  /** By owner. */
  readonly #coming = new Map<string, number>();

  /** A place for a run that is about to be made, until it is disposed of. Throws `busy` where too many wait. */
  admit(owner: string, { bounds, waiting }: { bounds: QueueBounds; waiting: readonly string[] }): Disposable {
    const { queuedMax, queuedPerOwnerMax } = bounds;
    const coming = this.#coming.get(owner) ?? 0;
    const all = [...this.#coming.values()].reduce((sum, count) => sum + count, waiting.length);
    if (all >= queuedMax) throw tooMany(`${queuedMax} runs wait already`);
    if (waiting.filter((each) => each === owner).length + coming >= queuedPerOwnerMax)
      throw tooMany(`${queuedPerOwnerMax} runs of ${owner} wait already`);
    this.#coming.set(owner, coming + 1);
    let isOver = false;
    return {
      [Symbol.dispose]: () => {
        if (isOver) return;
        isOver = true;
        const left = (this.#coming.get(owner) ?? 1) - 1;
        if (left > 0) this.#coming.set(owner, left);
        else this.#coming.delete(owner);
      },
    };
  }
}

function tooMany(why: string): CaissonError {
  return new CaissonError("busy", `the queue is full: ${why}`, {
    hint: "Try again when some have ended, or stop some that wait: caisson queue.",
    details,
  });
}

/** Throws `invalid` for what a sandbox could never have. */
export function checkMemory(memoryBytes: number | undefined, { memoryBytesMax }: QueueBounds): void {
  if (memoryBytes === undefined || memoryBytes <= memoryBytesMax) return;
  throw new CaissonError(
    "invalid",
    `${showBytes(memoryBytes)} of memory is more than the station gives to all sandboxes (${showBytes(memoryBytesMax)})`,
    { hint: "Ask for less, or let the station keep less for itself: station.memoryReserveBytes in config.json." },
  );
}

/** For what the station refuses once it is about to end. */
export function isEnding(): CaissonError {
  return new CaissonError("unavailable", "the station is about to end, and takes no new work", {
    hint: "Try again when the next one runs; what waits is not lost.",
    details,
  });
}

export function noRoomForSandbox(lacks: "sandboxes" | "memory" | "owner" | "promised", bounds: QueueBounds): CaissonError {
  const why = {
    sandboxes: `there are ${bounds.sandboxesMax} sandboxes, which is as many as there may be`,
    memory: `sandboxes have asked for all of the ${showBytes(bounds.memoryBytesMax)} of memory that they may have`,
    promised: `sandboxes may use ${showBytes(bounds.promisedBytesMax)} of memory together, those of one owner ${showBytes(bounds.promisedBytesPerOwnerMax)}, and this is more`,
    owner: `you have ${bounds.sandboxesPerOwnerMax} sandboxes, which is as many as one owner may have`,
  };
  const hint =
    lacks === "promised"
      ? "Give sandboxes a memory limit below the usual 4 GiB, remove some, or raise station.memoryOvercommit in config.json."
      : "Remove some, or try again when others have.";
  return new CaissonError("busy", why[lacks], { hint, details: { ...details, lacks } });
}
