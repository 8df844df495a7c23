const MIB = 1024 * 1024;

/** Of a sandbox for which none were asked. Without a schema: a command has them before it has any. */
export const defaultLimits = {
  cpus: 2,
  memoryBytes: 4096 * MIB,
  pids: 1000,
  wallClockMs: 30 * 60_000,
  tmpBytes: 512 * MIB,
} as const;
