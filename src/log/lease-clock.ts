import { bootId } from "../lib/boot-id.ts";

/**
 * What the life of a lease is measured by. On one machine that is the kernel's monotonic clock, which all its processes
 * share: setting the machine's clock, or sending it to sleep, takes no lease from a living owner. It means nothing
 * beyond the boot it belongs to, where the wall clock is all there is.
 */
export interface LeaseClock {
  /** Names the boot this clock counts from. */
  readonly boot: string;
  nowMs(): number;
}

export function machineClock(): LeaseClock {
  return { boot: bootId(), nowMs: () => Number(process.hrtime.bigint() / 1_000_000n) };
}
