import { markHealth } from "../../sandbox/health-mark.ts";
import type { RuntimeSet } from "../../sandbox/runtime-set.ts";
import { removeStaleArtifacts } from "../inside/remove-stale-artifacts.ts";
import type { StationCore } from "../station-core.ts";
import { collectIncident } from "./collect-incident.ts";
import { createFindWatched } from "./find-watched.ts";
import { createHealthLog } from "./health-log.ts";
import type { HealthSettings } from "./health-settings.ts";
import { createHealthWatch, type HealthWatch } from "./health-watch.ts";
import { createIncidentStore } from "./incident-store.ts";
import { createRestarts } from "./restarts.ts";
import { createStationBeat } from "./station-beat.ts";

const TICK_MS = 1_000;
const FIND_EVERY_TICKS = 2;
const BEAT_EVERY_TICKS = 3;
const FORGET_EVERY_TICKS = 3_600;
/** Stale data is first removed one minute after the station starts. */
const FORGET_AT_TICK = 60;

export interface WatchingOptions {
  local: { core: StationCore; queue: { drive(run: string): void } };
  runtimes: RuntimeSet;
  settings: HealthSettings;
  onDefect: (error: unknown) => void;
}

/** Watches everything for a station until it is closed. */
export function startWatching(options: WatchingOptions): AsyncDisposable {
  const { onDefect } = options;
  const { core } = options.local;
  const beat = createStationBeat({ stateDir: core.stateDir, station: core.identity });
  const watch = createStationWatch({ ...options, tickMs: TICK_MS });
  let ticks = 0;
  const tick = async () => {
    ticks += 1;
    if (ticks % BEAT_EVERY_TICKS === 1) await beat.beat();
    await watch.tick();
    if (ticks % FORGET_EVERY_TICKS === FORGET_AT_TICK) {
      await removeStaleArtifacts({ ...core, nowMs: Date.now() });
    }
  };
  // The timer must not keep a process alive that has nothing else to do.
  const timer = setInterval(() => void tick().catch(onDefect), TICK_MS).unref();
  void tick().catch(onDefect);
  return {
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      await watch[Symbol.asyncDispose]();
      await beat.end();
    },
  };
}

/** Like `startWatching`, but the caller makes the ticks. */
export function createStationWatch(options: WatchingOptions & { tickMs: number; now?: () => number; clock?: () => number }): HealthWatch {
  const { local, runtimes, settings, onDefect, tickMs } = options;
  const { log, store, stateDir, identity, crashpoint } = local.core;
  const healthLog = createHealthLog(log);
  const incidents = createIncidentStore({ stateDir });
  const restarts = createRestarts({
    settings,
    healthLog,
    log,
    incidents,
    crashpoint,
    collect: async (watched, about) => incidents.keep(await collectIncident(watched, { ...about, log })),
    ...(options.clock && { now: options.clock }),
  });
  return createHealthWatch({
    settings,
    tickMs,
    log: healthLog,
    find: createFindWatched({ stateDir, store, runtimes, log, identity, drive: (run) => local.queue.drive(run) }),
    findEveryTicks: FIND_EVERY_TICKS,
    async onLevel({ subject }, { level }) {
      if (subject.kind === "sandbox") markHealth(store.dir(subject.id), { level, station: identity });
    },
    restart: restarts.restart,
    onDefect,
    ...(options.now && { now: options.now }),
  });
}
