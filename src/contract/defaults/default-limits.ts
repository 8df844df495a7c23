const MIB = 1024 * 1024;

/** The default limits of a sandbox. Needs no schema, because commands need the limits before they load schemas. */
export const defaultLimits = {
  cpus: 2,
  memoryBytes: 4096 * MIB,
  pids: 1000,
  wallClockMs: 30 * 60_000,
  tmpBytes: 512 * MIB,
} as const;
