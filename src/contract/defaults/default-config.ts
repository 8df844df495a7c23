/**
 * The default configuration. The schemas of `config.ts` use the same values. It is separate because most commands need
 * it, and creating those schemas takes longer than everything that `exec` requests from a station.
 */
export function defaultConfig() {
  return {
    runtime: "auto",
    limits: {},
    models: { prices: {} },
    network: { caFiles: [], privateFetchHosts: [], registries: {}, gateway: {} },
    health: { runningTtlMs: 15_000, idleTtlMs: 30_000, restart: true, graceMs: 10_000, cooldownMs: 60_000, restartsPerHour: 3 },
    guardian: {
      watch: "all" as const,
      atMost: "pause" as const,
      stepsMin: 8,
      workedMsMin: 60_000,
      bands: { nudge: 0.7, reprioritize: 0.7, pause: 0.5, stop: 0.3 },
      noProgressSteps: 15,
      repetitions: 6,
      errors: 8,
      costUsdWithoutProgress: 2,
      tokensWithoutProgress: 3_000_000,
      duplicates: 0.8,
      effectSteps: 6,
      judge: { everySteps: 10, callsMax: 5, costUsdMax: 0.25, callsPerHourMax: 60 },
    },
    workspace: { hide: [], show: [] },
    secrets: {},
    telemetry: { metricsWithoutToken: false },
    agentFolders: [],
    station: { jobsPerOwnerMax: 200, queuedMax: 10_000, queuedPerOwnerMax: 1_000 },
    agent: {},
    author: { name: "Caisson", email: "caisson@localhost" },
  };
}
