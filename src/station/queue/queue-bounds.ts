import { availableParallelism, totalmem } from "node:os";
import type { StationConfig } from "../../contract/config.ts";
import type { MachineSize } from "../../sandbox/machine-size.ts";
import type { QueueBounds } from "./schedule.ts";

const GIB = 1024 ** 3;
/** An agent waits for its model most of the time. */
const RUNS_PER_CPU = 8;
/** What one run is reckoned at: its sandbox while little happens in it, and its share of the station. */
const RUN_BYTES = GIB / 4;
const SANDBOXES_PER_RUN = 4;
/** Sandboxes hardly ever use all they may: this many times the memory is promised. */
const OVERCOMMIT = 4;

/** What the configuration says, and where it says nothing, what suits the machine. */
export function queueBounds(
  given: StationConfig,
  machine: MachineSize = { cpus: availableParallelism(), memoryBytes: totalmem() },
): QueueBounds {
  const reserveBytes = given.memoryReserveBytes ?? Math.max(GIB / 2, machine.memoryBytes / 10);
  const memoryBytesMax = Math.max(RUN_BYTES, Math.floor(machine.memoryBytes - reserveBytes));
  const promisedBytesMax = Math.floor(memoryBytesMax * (given.memoryOvercommit ?? OVERCOMMIT));
  const fitting = Math.floor(memoryBytesMax / RUN_BYTES);
  const runsMax = given.runsMax ?? Math.max(1, Math.min(RUNS_PER_CPU * machine.cpus, fitting));
  const sandboxesMax = given.sandboxesMax ?? SANDBOXES_PER_RUN * runsMax;
  return {
    runsMax,
    // Whoever takes all they can leaves a quarter to others.
    runsPerOwnerMax: Math.min(runsMax, given.runsPerOwnerMax ?? Math.ceil((runsMax * 3) / 4)),
    sandboxesMax,
    sandboxesPerOwnerMax: Math.min(sandboxesMax, given.sandboxesPerOwnerMax ?? Math.ceil((sandboxesMax * 3) / 4)),
    memoryBytesMax,
    promisedBytesMax,
    promisedBytesPerOwnerMax: Math.ceil((promisedBytesMax * 3) / 4),
    queuedMax: given.queuedMax,
    queuedPerOwnerMax: given.queuedPerOwnerMax,
  };
}
