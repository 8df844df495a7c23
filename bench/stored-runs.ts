import { mkdtempDisposable } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { AgentDefinition } from "../src/contract/agent/agent.ts";
import { ListRuns } from "../src/contract/run/run-verbs.ts";
import type { NewEvent } from "../src/log/log.ts";
import { type Projection, project, projectionOf } from "../src/log/projection.ts";
import { chainSum } from "../src/log/sqlite/commit.ts";
import { createHeadRows } from "../src/log/sqlite/head-rows.ts";
import { createSqliteLog } from "../src/log/sqlite/log.ts";
import { listRuns } from "../src/station/runs/list-runs.ts";
import { runStream } from "../src/station/vocabulary/station-names.ts";
import { createSessionStore } from "../src/workspace/sessions.ts";
import { timeEach } from "./measure.ts";
import type { Figures } from "./report.ts";

const RUNS = 100_000;
const EVENTS_EACH = 50;
const ASKED = 200;
const PAGE = 50;
const GROUP = "a page of 50 of 100,000 runs with 5,000,000 events";

/** Measures a page of runs among very many stored ones, by filter. */
export async function benchStoredRuns(): Promise<Figures> {
  await using folder = await mkdtempDisposable(join(tmpdir(), "caisson-bench-stored-"));
  const dir = folder.path;
  const path = join(dir, "log.db");
  await createSqliteLog({ path })[Symbol.asyncDispose]();
  fill(path);
  await using log = createSqliteLog({ path });
  const identity = { pid: process.pid, host: "bench", startTicks: 1, bootId: "bench" };
  const sessions = createSessionStore({ stateDir: dir, log, identity, alive: () => true });
  const views = { log, sessions, driverOf: async () => null, placeOf: () => null };
  const rows = [];
  for (const [name, filter] of Object.entries(filters)) {
    const request = ListRuns.parse({ limit: PAGE, ...filter });
    const { p50, p95 } = await timeEach({ n: ASKED, once: () => listRuns(request, views) });
    rows.push({ group: GROUP, name, value: p50, p95, unit: "ms" as const, n: ASKED });
  }
  const worst = Math.max(...rows.filter(({ name }) => !name.startsWith("words")).map(({ value }) => value));
  return { rows, targets: [{ name: GROUP, measured: worst, unit: "ms", atMost: 5 }] };
}

const filters: Readonly<Record<string, object>> = {
  all: {},
  "one owner of a hundred": { owner: "owner-7" },
  "one owner and one agent": { owner: "owner-7", agent: "agent-3" },
  "a rare label": { label: ["ticket=T-777"] },
  "a common label and a finish reason": { label: ["team=parsers"], finish: ["done"] },
  "finished runs that are not sub-runs": { parent: null, state: "ended" },
  "words in the latest tasks": { text: "wall 99" },
};

/** Uses SQL to write what the log itself would: an append of each event would take an hour. */
function fill(path: string): void {
  const database = new DatabaseSync(path);
  database.exec("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN");
  const projection = projectionOf(runStream("")) as Projection;
  database.prepare("INSERT OR REPLACE INTO projections VALUES (?, ?)").run(projection.prefix, projection.version);
  const rows = createHeadRows(database);
  const event = database.prepare("INSERT INTO events (stream, seq, type, version, at, data, sum) VALUES (?, ?, ?, ?, ?, ?, ?)");
  const stream = database.prepare("INSERT INTO streams (stream, last_seq, last_sum, at, epoch) VALUES (?, ?, ?, ?, 0)");
  for (let n = 0; n < RUNS; n++) {
    const name = runStream(`run_${idOf(n)}`);
    const at = new Date(Date.UTC(2030, 0, 1) + n * 1000).toISOString();
    const events = eventsOf(n);
    let sum = 0;
    events.forEach(({ type, version, data }, index) => {
      const text = JSON.stringify(data);
      sum = chainSum(sum, { seq: index + 1, type, version, at, data: text });
      event.run(name, index + 1, type, version, at, text, sum);
    });
    const projectedRun = project(
      projection,
      { head: null, damage: null },
      [events[0] as NewEvent, events.at(-1) as NewEvent].map((each, index) => ({ ...each, at, seq: index + 1 })),
    );
    const head = {
      stream: name,
      seq: events.length,
      version: projection.version,
      open: 0,
      head: JSON.stringify(projectedRun.head),
      damage: null,
      at,
    };
    rows.store(head, projection);
    stream.run(name, events.length, sum, at);
  }
  database.exec("COMMIT");
  database.close();
}

const LETTERS = "abcdefghijklmnopqrstuvwxyz234567";
const idOf = (n: number) => Array.from({ length: 12 }, (_, at) => LETTERS[Math.floor(n / 32 ** (11 - at)) % 32]).join("");

function eventsOf(n: number): NewEvent[] {
  const usage = { inputTokens: 10, outputTokens: 10, cachedInputTokens: 0, reasoningTokens: 0 };
  const created: NewEvent = {
    type: "run.created",
    version: 1,
    data: {
      run: `run_${idOf(n)}`,
      parent: null,
      session: `run_${idOf(n)}`,
      agent: { name: `agent-${n % 7}`, digest: "0", definition: definition as never },
      task: `Paint the wall ${n}`,
      model: `model-${n % 5}`,
      budgets: {},
      owner: `owner-${n % 100}`,
      labels: { team: n % 2 === 0 ? "parsers" : "printers", ticket: `T-${n % 5000}` },
    },
  };
  const steps = Array.from(
    { length: EVENTS_EACH - 2 },
    (_, at): NewEvent => ({ type: "step.started", version: 1, data: { step: at + 1 } }),
  );
  return [created, ...steps, { type: "run.ended", version: 1, data: { reason: "done", text: "Done.", steps: 48, usage, costUsd: 0.001 } }];
}

const definition = AgentDefinition.parse({ name: "bench", system: "You work." });
