import { CaissonError } from "../../contract/error/error.ts";
import { showBytes } from "../../lib/quantity.ts";
import type { QueueBounds } from "./schedule.ts";

/** When a client that was refused for lack of room may retry. */
const RETRY_AFTER_SECONDS = 15;
const details = { retryAfterSeconds: RETRY_AFTER_SECONDS };

/** Counts the runs that are being created, to enforce the bounds on waiting runs. */
export class Admissions {
  /** The number of runs being created, by owner. */
  readonly #coming = new Map<string, number>();

  /** Reserves a place for a new run until disposed of. Throws `busy` if too many runs wait. */
  admit(owner: string, { bounds, waiting }: { bounds: QueueBounds; waiting: readonly string[] }): Disposable {
    const { queuedMax, queuedPerOwnerMax } = bounds;
    const coming = this.#coming.get(owner) ?? 0;
    const all = [...this.#coming.values()].reduce((sum, count) => sum + count, waiting.length);
    if (all >= queuedMax) throw tooMany(`${queuedMax} runs are waiting already`);
    if (waiting.filter((each) => each === owner).length + coming >= queuedPerOwnerMax)
      throw tooMany(`${queuedPerOwnerMax} runs of ${owner} are waiting already`);
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
    hint: "Try again when some runs have ended, or stop waiting ones: caisson queue.",
    details,
  });
}

/** Throws `invalid` for more memory than a sandbox could ever have. */
export function checkMemory(memoryBytes: number | undefined, { memoryBytesMax }: QueueBounds): void {
  if (memoryBytes === undefined || memoryBytes <= memoryBytesMax) return;
  throw new CaissonError(
    "invalid",
    `${showBytes(memoryBytes)} of memory is more than the station has for all sandboxes (${showBytes(memoryBytesMax)})`,
    { hint: "Request less memory, or lower the station's reserve: station.memoryReserveBytes in config.json." },
  );
}

/** Returns the error for requests that arrive while the station shuts down. */
export function shuttingDownError(): CaissonError {
  return new CaissonError("unavailable", "the station is shutting down and accepts no new work", {
    hint: "Try again once the next station runs. Waiting runs are not lost.",
    details,
  });
}

export function noRoomForSandbox(lacks: "sandboxes" | "memory" | "owner" | "promised", bounds: QueueBounds): CaissonError {
  const why = {
    sandboxes: `the limit of ${bounds.sandboxesMax} sandboxes is reached`,
    memory: `other sandboxes have requested all of the ${showBytes(bounds.memoryBytesMax)} of memory for sandboxes`,
    promised: `the memory limits of all sandboxes would exceed ${showBytes(bounds.promisedBytesMax)} in total, or ${showBytes(bounds.promisedBytesPerOwnerMax)} for one owner`,
    owner: `you have reached the limit of ${bounds.sandboxesPerOwnerMax} sandboxes for one owner`,
  };
  const hint =
    lacks === "promised"
      ? "Give sandboxes a memory limit below the default of 4 GiB, remove some, or raise station.memoryOvercommit in config.json."
      : "Remove some sandboxes, or try again later.";
  return new CaissonError("busy", why[lacks], { hint, details: { ...details, lacks } });
}
