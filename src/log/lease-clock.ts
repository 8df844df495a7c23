import { bootId } from "../lib/boot-id.ts";

/**
 * Measures the lifetime of leases. On one machine that is the kernel's monotonic clock, which all processes share:
 * setting the wall clock or suspending the machine takes no lease from a live holder. Its values are meaningless after
 * a reboot, where only the wall clock remains.
 */
export interface LeaseClock {
  /** Identifies the boot that this clock counts from. */
  readonly boot: string;
  nowMs(): number;
}

export function machineClock(): LeaseClock {
  return { boot: bootId(), nowMs: () => Number(process.hrtime.bigint() / 1_000_000n) };
}
