const MIB = 1024 * 1024;

/** The default limits of a sandbox. No schema is involved: commands need the limits before they load any. */
export const defaultLimits = {
  cpus: 2,
  memoryBytes: 4096 * MIB,
  pids: 1000,
  wallClockMs: 30 * 60_000,
  tmpBytes: 512 * MIB,
} as const;
