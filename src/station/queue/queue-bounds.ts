import { availableParallelism, totalmem } from "node:os";
import type { StationConfig } from "../../contract/config/config.ts";
import type { MachineSize } from "../../sandbox/machine-size.ts";
import type { QueueBounds } from "./schedule.ts";

const GIB = 1024 ** 3;
/** More than one, because an agent waits for its model most of the time. */
const RUNS_PER_CPU = 8;
/** The memory we estimate for one run: a mostly idle sandbox and its share of the station. */
const RUN_BYTES = GIB / 4;
const SANDBOXES_PER_RUN = 4;
/** The factor by which we overcommit memory: sandboxes rarely use all the memory that they may. */
const OVERCOMMIT = 4;

/** Returns the configured bounds, with defaults that suit the machine. */
export function queueBounds(
  config: StationConfig,
  machine: MachineSize = { cpus: availableParallelism(), memoryBytes: totalmem() },
): QueueBounds {
  const reserveBytes = config.memoryReserveBytes ?? Math.max(GIB / 2, machine.memoryBytes / 10);
  const memoryBytesMax = Math.max(RUN_BYTES, Math.floor(machine.memoryBytes - reserveBytes));
  const promisedBytesMax = Math.floor(memoryBytesMax * (config.memoryOvercommit ?? OVERCOMMIT));
  const fitting = Math.floor(memoryBytesMax / RUN_BYTES);
  const runsMax = config.runsMax ?? Math.max(1, Math.min(RUNS_PER_CPU * machine.cpus, fitting));
  const sandboxesMax = config.sandboxesMax ?? SANDBOXES_PER_RUN * runsMax;
  return {
    runsMax,
    // This leaves about a quarter to other owners.
    runsPerOwnerMax: Math.min(runsMax, config.runsPerOwnerMax ?? Math.ceil((runsMax * 3) / 4)),
    sandboxesMax,
    sandboxesPerOwnerMax: Math.min(sandboxesMax, config.sandboxesPerOwnerMax ?? Math.ceil((sandboxesMax * 3) / 4)),
    memoryBytesMax,
    promisedBytesMax,
    promisedBytesPerOwnerMax: Math.ceil((promisedBytesMax * 3) / 4),
    queuedMax: config.queuedMax,
    queuedPerOwnerMax: config.queuedPerOwnerMax,
  };
}
