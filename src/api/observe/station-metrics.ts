import { monitorEventLoopDelay } from "node:perf_hooks";
import type { StationStatus } from "../../contract/api/station-routes.ts";
import type { HealthView, IncidentView } from "../../contract/health.ts";
import type { MachineStats } from "../../contract/machine-verbs.ts";
import type { RunQueueView } from "../../contract/run-queue.ts";
import type { RunView } from "../../contract/run-verbs.ts";
import type { SpecSummary } from "../../contract/spec-verbs.ts";
import type { Station } from "../../station/station.ts";
import { type Family, gauge } from "./metrics.ts";

/** Runs whose state is looked at each time; those beyond are counted as open. */
const OPEN_RUNS_MAX = 1000;
/** Driven things of each kind. */
const OPEN_THINGS_MAX = 1000;
const LOOP_RESOLUTION_MS = 20;
const NANOSECONDS = 1e9;

/** What is asked for figures. */
export type WatchedStation = Pick<Station, "runs" | "sandboxes" | "health" | "machine" | "workflows" | "specs" | "ships" | "merges">;

export interface StationMetrics extends Disposable {
  /** As it is now. */
  families(): Promise<Family[]>;
}

/** What there is at the station, and how its process is doing. */
export function createStationMetrics({
  station,
  status,
  version,
}: {
  station: WatchedStation;
  status: () => Pick<StationStatus, "requests" | "startedAt" | "load">;
  version: string;
}): StationMetrics {
  const delay = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS });
  delay.enable();
  return {
    async families() {
      // One after the other: together they would hold the event loop for as long as all of them take.
      const open = await station.runs.list({ state: "open", limit: OPEN_RUNS_MAX });
      const ended = await station.runs.list({ state: "ended", limit: 1 });
      const { sandboxes } = await station.sandboxes.list({ sweep: false });
      const queue = await station.runs.queue();
      const { subjects } = await station.health.list();
      const incidents = await station.health.incidents();
      const { pool } = await station.machine.stats();
      const families = [
        gauge("caisson_info", "The station's version.", [{ labels: { version }, value: 1 }]),
        gauge("caisson_started_seconds", "When the station was started, in seconds since 1970.", Date.parse(status().startedAt) / 1000),
        gauge("caisson_open_requests", "Requests under way, open streams among them.", status().requests),
        gauge("caisson_runs", "Runs by state.", countedRuns(open, ended)),
        gauge(
          "caisson_sandboxes",
          "Sandboxes by runtime and state.",
          counted(sandboxes, ({ runtime, state }) => ({ runtime, state })),
        ),
        await drivenFamily(station),
        ...poolFamilies(pool),
        ...queueFamilies(queue),
        ...healthFamilies(subjects, incidents),
        ...processFamilies(),
        ...loopFamilies(delay),
        ...loadFamilies(status().load),
      ];
      delay.reset();
      return families;
    },
    [Symbol.dispose]: () => delay.disable(),
  };
}

/** By state: of those that are open and were not looked at it is only known that they are. */
export function countedRuns(
  open: { runs: readonly Pick<RunView, "status">[]; total: number },
  ended: { total: number },
): { labels: Record<string, string>; value: number }[] {
  const rest = [
    { labels: { state: "open" }, value: open.total - open.runs.length },
    { labels: { state: "ended" }, value: ended.total },
  ];
  return [...counted(open.runs, ({ status }) => ({ state: status })), ...rest.filter(({ value }) => value > 0)];
}

function counted<Item>(items: readonly Item[], labelsOf: (item: Item) => Record<string, string>) {
  const counts = new Map<string, { labels: Record<string, string>; value: number }>();
  for (const item of items) {
    const labels = labelsOf(item);
    const key = JSON.stringify(labels);
    const found = counts.get(key) ?? { labels, value: 0 };
    found.value += 1;
    counts.set(key, found);
  }
  return [...counts.values()];
}

const over: readonly SpecSummary["status"][] = ["done", "planned", "failed", "cancelled"];

/** Of each kind those that changed last; beyond them nothing is counted. */
async function drivenFamily(station: WatchedStation): Promise<Family> {
  const asked = { state: "open", limit: OPEN_THINGS_MAX } as const;
  const [workflows, specs, ships, merges] = await Promise.all([
    station.workflows.list(asked),
    station.specs.list({ limit: OPEN_THINGS_MAX }),
    station.ships.list(asked),
    station.merges.list(asked),
  ]);
  const things = [
    ...workflows.items.map(({ status }) => ({ kind: "workflow", status })),
    ...specs.items.filter(({ status }) => !over.includes(status)).map(({ status }) => ({ kind: "spec", status })),
    ...ships.items.map(({ status }) => ({ kind: "ship", status })),
    ...merges.items.map(({ status }) => ({ kind: "merge", status })),
  ];
  const help = "Workflows, specs, ships and merges that are not over, by kind and status.";
  return gauge(
    "caisson_driven",
    help,
    counted(things, ({ kind, status }) => ({ kind, status })),
  );
}

/** Nothing where no sandboxes are kept ready. */
export function poolFamilies(pool: MachineStats["pool"]): Family[] {
  if (pool === null) return [];
  const { waiting, size, ready, fresh } = pool;
  const of = (how: string, value: number) => ({ labels: { how }, value });
  const given = "Sandboxes that were given to whoever asked: ready ones, and those that had to be made.";
  return [
    gauge("caisson_pool_waiting", "Sandboxes that are ready for whoever asks.", waiting),
    gauge("caisson_pool_size", "How many shall be.", size),
    { name: "caisson_pool_given_total", help: given, type: "counter", samples: [of("ready", ready), of("fresh", fresh)] },
  ];
}

/** What waits, and how much of what it may do the station does. */
function queueFamilies({ total, atWork }: RunQueueView): Family[] {
  const waiting = gauge("caisson_queued_runs", "Runs that wait in the queue.", total);
  if (atWork === null) return [waiting];
  const { runs, runsMax, sandboxes, sandboxesMax, memoryBytes, memoryBytesMax } = atWork;
  const of = (what: string, value: number) => ({ labels: { what }, value });
  return [
    waiting,
    gauge("caisson_at_work", "What the queue counts against its bounds: runs, sandboxes, and the bytes of memory that these asked for.", [
      of("runs", runs),
      of("sandboxes", sandboxes),
      of("memory_bytes", memoryBytes),
    ]),
    gauge("caisson_at_work_max", "The bounds.", [of("runs", runsMax), of("sandboxes", sandboxesMax), of("memory_bytes", memoryBytesMax)]),
  ];
}

function healthFamilies(subjects: readonly HealthView[], incidents: readonly IncidentView[]): Family[] {
  const restarted = subjects.flatMap(({ subject: { kind }, restarts }) => Array<{ kind: string }>(restarts).fill({ kind }));
  return [
    gauge(
      "caisson_watched",
      "What is watched, by kind and level of health.",
      counted(subjects, ({ subject: { kind }, level }) => ({ kind, level })),
    ),
    gauge(
      "caisson_escalated",
      "What is left to a person, by kind.",
      counted(
        subjects.filter(({ escalated }) => escalated),
        ({ subject: { kind } }) => ({ kind }),
      ),
    ),
    gauge(
      "caisson_restarts_last_hour",
      "Restarts within the last hour of what is watched, by kind.",
      counted(restarted, ({ kind }) => ({ kind })),
    ),
    gauge(
      "caisson_incidents",
      "Incidents that are kept, by kind and by what was wrong.",
      counted(incidents, ({ subject: { kind }, condition }) => ({ kind, condition })),
    ),
  ];
}

/** How many requests wait, and how many were refused instead. */
function loadFamilies(load: StationStatus["load"]): Family[] {
  if (load === undefined) return [];
  const refused = Object.entries(load.refused).map(([kind, value]) => ({ labels: { class: kind }, value }));
  const help = "Requests that were refused because of overload, by class.";
  return [
    gauge("caisson_waiting_requests", "Requests that wait for their turn.", load.waiting),
    gauge("caisson_request_wait_seconds", "The longest that a request waited for its turn in the last minute.", load.waitedMs / 1000),
    { name: "caisson_requests_refused_total", help, type: "counter", samples: refused },
  ];
}

function processFamilies(): Family[] {
  const { rss, heapUsed, external } = process.memoryUsage();
  const { user, system } = process.cpuUsage();
  const memory = [
    { labels: { kind: "resident" }, value: rss },
    { labels: { kind: "heap" }, value: heapUsed },
    { labels: { kind: "external" }, value: external },
  ];
  const cpu = [{ labels: {}, value: (user + system) / 1e6 }];
  return [
    gauge("caisson_memory_bytes", "Memory of the station's process.", memory),
    { name: "caisson_cpu_seconds_total", help: "Processor time of the station's process.", type: "counter", samples: cpu },
  ];
}

/** Since the last look. What is measured is from one tick of a timer to the next, so that one is the least. */
function loopFamilies(delay: ReturnType<typeof monitorEventLoopDelay>): Family[] {
  const seconds = (nanoseconds: number) =>
    Number.isFinite(nanoseconds) ? Math.max(0, nanoseconds / NANOSECONDS - LOOP_RESOLUTION_MS / 1000) : 0;
  const values = [
    { labels: { statistic: "median" }, value: seconds(delay.percentile(50)) },
    { labels: { statistic: "p99" }, value: seconds(delay.percentile(99)) },
    { labels: { statistic: "max" }, value: seconds(delay.max) },
  ];
  return [gauge("caisson_event_loop_delay_seconds", "How late timers were since the last look.", values)];
}
