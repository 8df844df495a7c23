import { emptyHealthFacts, type HealthFacts, type HealthView } from "../../contract/health/health.ts";
import type { RunFacts } from "../../contract/run/run-facts.ts";
import type { SandboxFacts } from "../../contract/sandbox/sandbox-log-event.ts";
import type { Log } from "../../log/log.ts";
import type { SandboxRecord, Store } from "../../sandbox/store.ts";
import type { HealthVerbs } from "../../verbs/health.ts";
import { RUN_LABEL, runOf, runStream, sandboxOf, sandboxStream } from "../vocabulary/station-names.ts";
import type { HealthSettings } from "./health-settings.ts";
import { createIncidentStore } from "./incident-store.ts";
import { recentRestarts } from "./restarts.ts";
import { stationHealth } from "./station-beat.ts";

const SUBJECTS_MAX = 1000;

export interface LocalHealthOptions {
  stateDir: string;
  store: Store;
  log: () => Promise<Log>;
  settings: HealthSettings;
}

/** Uses only recorded facts, so every process gives the same answers. */
export function createLocalHealth(options: LocalHealthOptions): HealthVerbs {
  const { stateDir, store, settings } = options;
  const incidents = createIncidentStore({ stateDir });
  return {
    async list() {
      const station = await stationHealth(stateDir, { settings, alive: (each) => store.isHolderAlive(each) });
      const subjects = await subjectsOf(await options.log(), (await store.list()).records);
      return { watched: station !== null, subjects: [...(station === null ? [] : [station]), ...subjects] };
    },
    incidents: () => incidents.list(),
    incident: (id) => incidents.get(id),
  };
}

async function subjectsOf(log: Log, records: readonly SandboxRecord[]): Promise<HealthView[]> {
  const [{ heads: runs }, { heads: sandboxes }] = await Promise.all([
    log.heads({ prefix: runStream(""), open: true, limit: SUBJECTS_MAX }),
    log.heads({ prefix: sandboxStream(""), open: true, limit: SUBJECTS_MAX }),
  ]);
  const factsOfRun = new Map(runs.map(({ stream, head }) => [runOf(stream), (head as unknown as RunFacts).health]));
  const factsOfSandbox = new Map(sandboxes.map(({ stream, head }) => [sandboxOf(stream), (head as unknown as SandboxFacts).health]));
  const keptRecords = records
    .filter(({ spec: config, state }) => config.keep && (state === "running" || state === "paused"))
    .slice(0, SUBJECTS_MAX);
  const ofSandboxes = keptRecords.map(({ id, state, spec: config }) => {
    const run = config.labels[RUN_LABEL] ?? null;
    const facts = (run === null ? factsOfSandbox.get(id) : factsOfRun.get(run)?.sandbox) ?? emptyHealthFacts();
    const condition = state === "paused" ? "frozen" : facts.condition;
    return viewOf({ kind: "sandbox", id }, { ...facts, condition }, run);
  });
  const ofDrivers: HealthView[] = [];
  for (const { stream } of runs) {
    if ((await log.lastLease(stream)) === null) continue;
    const run = runOf(stream);
    ofDrivers.push(viewOf({ kind: "driver", id: run }, factsOfRun.get(run)?.driver ?? emptyHealthFacts(), run));
  }
  return [...ofSandboxes, ...ofDrivers];
}

function viewOf(subject: HealthView["subject"], facts: HealthFacts, run: string | null): HealthView {
  const { level, condition, since, escalated } = facts;
  return { subject, run, level, condition, since, restarts: recentRestarts(facts, Date.now()).length, escalated };
}
