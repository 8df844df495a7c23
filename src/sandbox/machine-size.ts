import { availableParallelism, totalmem } from "node:os";
import { defaultLimits } from "../contract/default-limits.ts";
import { CaissonError } from "../contract/error.ts";
import type { LimitsRequest } from "../contract/sandbox.ts";
import { showBytes } from "../lib/quantity.ts";

export interface MachineSize {
  cpus: number;
  memoryBytes: number;
}

/** Throws `invalid` for a limit above what the machine has: it would limit nothing, and is most likely a slip. */
export function refuseBeyondMachine(
  limits: LimitsRequest,
  machine: MachineSize = { cpus: availableParallelism(), memoryBytes: totalmem() },
): void {
  const { cpus, memoryBytes } = limits;
  if (memoryBytes !== undefined && memoryBytes > machine.memoryBytes) {
    throw new CaissonError(
      "invalid",
      `${showBytes(memoryBytes)} of memory is more than this machine has (${showBytes(machine.memoryBytes)})`,
      {
        hint: `Ask for less with --memory, or leave it out: the default is ${showBytes(defaultLimits.memoryBytes)}.`,
        details: { limit: "memoryBytes" },
      },
    );
  }
  if (cpus !== undefined && cpus > machine.cpus) {
    throw new CaissonError("invalid", `${cpus} cpus are more than this machine has (${machine.cpus})`, {
      hint: `Ask for fewer with --cpus, or leave it out: the default is ${defaultLimits.cpus}.`,
      details: { limit: "cpus" },
    });
  }
}
