import { monitorEventLoopDelay } from "node:perf_hooks";
import type { HealthView, IncidentView } from "../../contract/health/health.ts";
import type { MachineStats } from "../../contract/machine/machine-verbs.ts";
import type { RunQueueView } from "../../contract/run/run-queue.ts";
import type { RunView } from "../../contract/run/run-verbs.ts";
import type { SpecSummary } from "../../contract/spec/spec-verbs.ts";
import type { Station } from "../../verbs/station.ts";
import type { StationStatus } from "../../verbs/station-routes.ts";
import { type Family, gauge } from "./metrics.ts";

/** How many open runs are counted by state; the rest counts as open. */
const OPEN_RUNS_MAX = 1000;
/** The most durable jobs of each kind that are counted. */
const OPEN_THINGS_MAX = 1000;
const LOOP_RESOLUTION_MS = 20;
const NANOSECONDS = 1e9;

/** The parts of a station that provide metrics. */
export type WatchedStation = Pick<
  Station,
  "runs" | "sandboxes" | "health" | "machine" | "workflows" | "specs" | "ships" | "merges" | "bests"
>;

export interface StationMetrics extends Disposable {
  /** Returns the current metrics. */
  families(): Promise<Family[]>;
}

/** Creates the metrics of the station's contents and of its process. */
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
      // One after the other: in parallel they would block the event loop for their total time.
      const open = await station.runs.list({ state: "open", limit: OPEN_RUNS_MAX });
      const ended = await station.runs.list({ state: "ended", limit: 1 });
      const { sandboxes } = await station.sandboxes.list({ sweep: false });
      const queue = await station.runs.queue();
      const { subjects } = await station.health.list();
      const incidents = await station.health.incidents();
      const { pool } = await station.machine.stats();
      const families = [
        gauge("caisson_info", "The station's version.", [{ labels: { version }, value: 1 }]),
        gauge("caisson_started_seconds", "When the station started, in seconds since 1970.", Date.parse(status().startedAt) / 1000),
        gauge("caisson_open_requests", "Requests in progress, including open streams.", status().requests),
        gauge("caisson_runs", "Runs by state.", countedRuns(open, ended)),
        gauge(
          "caisson_sandboxes",
          "Sandboxes by runtime and state.",
          countByLabels(sandboxes, ({ runtime, state }) => ({ runtime, state })),
        ),
        await jobFamily(station),
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

/** Counts runs by state. Beyond the listed ones, only the number of open runs is known. */
export function countedRuns(
  open: { runs: readonly Pick<RunView, "status">[]; total: number },
  ended: { total: number },
): { labels: Record<string, string>; value: number }[] {
  const rest = [
    { labels: { state: "open" }, value: open.total - open.runs.length },
    { labels: { state: "ended" }, value: ended.total },
  ];
  return [...countByLabels(open.runs, ({ status }) => ({ state: status })), ...rest.filter(({ value }) => value > 0)];
}

function countByLabels<Item>(items: readonly Item[], labelsOf: (item: Item) => Record<string, string>) {
  const counts = new Map<string, { labels: Record<string, string>; value: number }>();
  for (const item of items) {
    const labels = labelsOf(item);
    const key = JSON.stringify(labels);
    const sample = counts.get(key) ?? { labels, value: 0 };
    sample.value += 1;
    counts.set(key, sample);
  }
  return [...counts.values()];
}

const over: readonly SpecSummary["status"][] = ["done", "planned", "failed", "cancelled"];

/** Counts the last changed jobs of each kind; older ones are not counted. */
async function jobFamily(station: WatchedStation): Promise<Family> {
  const filter = { state: "open", limit: OPEN_THINGS_MAX } as const;
  const [workflows, specs, ships, merges, bests] = await Promise.all([
    station.workflows.list(filter),
    station.specs.list({ limit: OPEN_THINGS_MAX }),
    station.ships.list(filter),
    station.merges.list(filter),
    station.bests.list(filter),
  ]);
  const things = [
    ...workflows.items.map(({ status }) => ({ kind: "workflow", status })),
    ...specs.items.filter(({ status }) => !over.includes(status)).map(({ status }) => ({ kind: "spec", status })),
    ...ships.items.map(({ status }) => ({ kind: "ship", status })),
    ...merges.items.map(({ status }) => ({ kind: "merge", status })),
    ...bests.items.map(({ status }) => ({ kind: "best", status })),
  ];
  const help = "Open workflows, specs, ships, merges and best-ofs, by kind and status.";
  return gauge(
    "caisson_driven",
    help,
    countByLabels(things, ({ kind, status }) => ({ kind, status })),
  );
}

/** Empty if no sandboxes are kept ready. */
export function poolFamilies(pool: MachineStats["pool"]): Family[] {
  if (pool === null) return [];
  const { waiting, size, ready, fresh } = pool;
  const of = (how: string, value: number) => ({ labels: { how }, value });
  const help = "Sandboxes given to callers: ready ones, and freshly created ones.";
  return [
    gauge("caisson_pool_waiting", "Sandboxes ready for callers.", waiting),
    gauge("caisson_pool_size", "Target number of ready sandboxes.", size),
    { name: "caisson_pool_given_total", help: help, type: "counter", samples: [of("ready", ready), of("fresh", fresh)] },
  ];
}

/** The queue length, and the usage of the queue's limits. */
function queueFamilies({ total, atWork }: RunQueueView): Family[] {
  const waiting = gauge("caisson_queued_runs", "Runs waiting in the queue.", total);
  if (atWork === null) return [waiting];
  const { runs, runsMax, sandboxes, sandboxesMax, memoryBytes, memoryBytesMax } = atWork;
  const of = (what: string, value: number) => ({ labels: { what }, value });
  return [
    waiting,
    gauge("caisson_at_work", "Usage that counts against the queue's limits: runs, sandboxes, and the memory they requested.", [
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
      "Watched sandboxes, drivers and stations, by kind and level of health.",
      countByLabels(subjects, ({ subject: { kind }, level }) => ({ kind, level })),
    ),
    gauge(
      "caisson_escalated",
      "Escalations that wait for a person, by kind.",
      countByLabels(
        subjects.filter(({ escalated }) => escalated),
        ({ subject: { kind } }) => ({ kind }),
      ),
    ),
    gauge(
      "caisson_restarts_last_hour",
      "Restarts of watched things within the last hour, by kind.",
      countByLabels(restarted, ({ kind }) => ({ kind })),
    ),
    gauge(
      "caisson_incidents",
      "Stored incidents, by kind and condition.",
      countByLabels(incidents, ({ subject: { kind }, condition }) => ({ kind, condition })),
    ),
  ];
}

/** The number of waiting and refused requests. */
function loadFamilies(load: StationStatus["load"]): Family[] {
  if (load === undefined) return [];
  const refused = Object.entries(load.refused).map(([kind, value]) => ({ labels: { class: kind }, value }));
  const help = "Requests refused because of overload, by class.";
  return [
    gauge("caisson_waiting_requests", "Requests waiting for their turn.", load.waiting),
    gauge("caisson_request_wait_seconds", "The longest wait of a request for its turn in the last minute.", load.waitedMs / 1000),
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

/** The delay since the last scrape. The timer measures from tick to tick, so the interval itself is subtracted. */
function loopFamilies(delay: ReturnType<typeof monitorEventLoopDelay>): Family[] {
  const seconds = (nanoseconds: number) =>
    Number.isFinite(nanoseconds) ? Math.max(0, nanoseconds / NANOSECONDS - LOOP_RESOLUTION_MS / 1000) : 0;
  const values = [
    { labels: { statistic: "median" }, value: seconds(delay.percentile(50)) },
    { labels: { statistic: "p99" }, value: seconds(delay.percentile(99)) },
    { labels: { statistic: "max" }, value: seconds(delay.max) },
  ];
  return [gauge("caisson_event_loop_delay_seconds", "Timer delay since the last scrape.", values)];
}
