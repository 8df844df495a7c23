import { availableParallelism, totalmem } from "node:os";
import { defaultLimits } from "../contract/defaults/default-limits.ts";
import { CaissonError } from "../contract/error/error.ts";
import type { LimitsRequest } from "../contract/sandbox/sandbox-fields.ts";
import { showBytes } from "../lib/quantity.ts";

export interface MachineSize {
  cpus: number;
  memoryBytes: number;
}

/** Throws `invalid` for a limit that exceeds the machine: it would limit nothing, and is most likely a mistake. */
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
        hint: `Pass a smaller --memory, or omit it: the default is ${showBytes(defaultLimits.memoryBytes)}.`,
        details: { limit: "memoryBytes" },
      },
    );
  }
  if (cpus !== undefined && cpus > machine.cpus) {
    throw new CaissonError("invalid", `${cpus} cpus are more than this machine has (${machine.cpus})`, {
      hint: `Pass a smaller --cpus, or omit it: the default is ${defaultLimits.cpus}.`,
      details: { limit: "cpus" },
    });
  }
}
