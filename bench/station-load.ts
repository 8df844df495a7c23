import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempDisposable, writeFile } from "node:fs/promises";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Client } from "../src/client/connect.ts";
import type { Figures, Row, Target } from "./report.ts";
import { measureHolds, startLargeRun } from "./station-holds.ts";
import type { LoadOrder, LoadResult } from "./station-load-result.ts";
import { type StationProcess, startStationProcess } from "./station-process.ts";

const RUNS = 20;
const RATE = 1_000;
const SECONDS = Number(process.env.BENCH_LOAD_SECONDS ?? 60);
/** The time that a fast model takes to answer. */
const MODEL_MS = 500;
/** How long the runs work alone first. */
const ALONE_MS = 10_000;
const AT_WORK_MS = 60_000;
const LOOK_MS = 100;
const QUEUED = Math.min(6_000, 100 * SECONDS);
const QUEUED_RATE = 100;

/**
 * Measures what callers of all kinds wait for while a station drives runs. The load comes from separate processes, at a
 * rate that does not wait for answers.
 */
export async function benchStationLoad(): Promise<Figures> {
  await using folder = await mkdtempDisposable(join(tmpdir(), "caisson-bench-load-"));
  const model = join(folder.path, "model.json");
  await writeFile(model, JSON.stringify({ turns }));
  await using station = await startStationProcess({ ready: 2, prepare: allowRuns });
  const mixed = await measureMixed(station, model);
  // Started before the queue is full.
  const run = await startLargeRun(station, folder.path);
  const queued = await measureQueued(station, folder.path);
  const holds = await measureHolds(station, run);
  const figures = [mixed, queued, holds];
  return { rows: figures.flatMap(({ rows }) => rows), targets: figures.flatMap(({ targets }) => targets) };
}

/** Sends requests of all kinds beside runs, and a few from a second owner who opens a connection for each. */
async function measureMixed(station: StationProcess, model: string): Promise<Figures> {
  const { client, url, token } = station;
  const { id: sandbox } = await client.sandboxes.create({ spec: {} });
  await client.files.write(sandbox, { path: "/workspace/small" }, Buffer.alloc(1024, "x"));
  const second = await client.tokens.create({ name: "second", scope: "run", owner: "second" });
  const runs = await Promise.all(
    Array.from({ length: RUNS }, (_, at) =>
      // As many steps as the script has, so the runs work all the time.
      client.runs.start({ task: "Work.", model: `scripted:${model}`, labels: { n: `${at}` }, settings: { maxSteps: turns.length } }),
    ),
  );
  await untilAtWork(client);
  const ids = runs.map(({ run }) => run);
  await station.delay();
  const alone = await stepsWhile(client, ids, () => delay(ALONE_MS));
  const aloneDelay = await station.delay();
  const kinds = kindsOf(sandbox, ids[0] ?? "");
  const results: LoadResult[] = [];
  const beside = await stepsWhile(client, ids, async () => {
    const others = { name: "runs", share: 100, method: "GET", path: "/v1/runs?limit=50" } as const;
    results.push(
      ...(await Promise.all([
        load({ url, token, rate: RATE, seconds: SECONDS, sockets: 200, kinds }),
        load({ url, token: second.token, rate: 5, seconds: SECONDS, sockets: 0, kinds: [others] }),
      ])),
    );
  });
  const besideDelay = await station.delay();
  const keptMiB = (await station.keptBytes()) / 2 ** 20;
  for (const run of ids) await client.runs.stop(run);
  await client.sandboxes.remove(sandbox);
  const [mixed, other] = results as [LoadResult, LoadResult];
  const group = `${RATE} requests a second for ${SECONDS} s, beside ${RUNS} runs; load ${loadavg()[0]?.toFixed(1)}`;
  const row = (name: string, { p50, p99, n }: { p50: number; p99: number; n: number }, note = ""): Row => ({
    group,
    name,
    value: p50,
    p95: p99,
    unit: "ms",
    n,
    note: `p99 instead of p95${note === "" ? "" : `; ${note}`}`,
  });
  const rows = [
    ...Object.entries(mixed.kinds).map(([name, quantiles]) => row(name, quantiles)),
    row("all accepted", mixed.accepted, `${mixed.accepted.perSecond.toFixed(0)} a second`),
    row("all refused", mixed.refused),
    row("a second owner, on new connections", other.accepted, `${other.refused.n} refused`),
    row("delay of the event loop, runs only", { p50: aloneDelay.p50Ms, p99: aloneDelay.p99Ms, n: 1 }),
    row("the same, under load", { p50: besideDelay.p50Ms, p99: besideDelay.p99Ms, n: 1 }, `at most ${besideDelay.mostMs.toFixed(0)} ms`),
    { group, name: "live memory afterwards", value: keptMiB, unit: "MiB" as const, n: 1 },
  ];
  const targets: Target[] = [
    {
      name: `of ${RATE} requests a second: reset, timed out or refused without Retry-After`,
      measured: mixed.failed,
      unit: "left",
      atMost: 0,
    },
    {
      name: "p99 of accepted requests",
      measured: mixed.accepted.p99,
      unit: "ms",
      atMost: 250,
    },
    {
      name: "a second owner on new connections, p99",
      measured: other.accepted.p99,
      unit: "ms",
      atMost: 500,
    },
    { name: "steps a second alone over steps under load", measured: alone / beside, unit: "×", atMost: 1.5 },
  ];
  return { rows, targets };
}

/** Queues runs with one request each; each run is recorded before its request is answered. */
async function measureQueued({ client, url, token }: StationProcess, folder: string): Promise<Figures> {
  // Short: every start reads and checks the script, which real models do not need.
  const model = join(folder, "short.json");
  await writeFile(model, JSON.stringify({ turns: turns.slice(0, 20) }));
  const body = JSON.stringify({ task: "Wait.", model: `scripted:${model}`, labels: { kind: "queued" } });
  const kinds: LoadOrder["kinds"] = [{ name: "a run", share: 100, method: "POST", path: "/v1/runs", body }];
  const result = await load({ url, token, rate: QUEUED_RATE, seconds: QUEUED / QUEUED_RATE, sockets: 200, kinds });
  const group = `${QUEUED} runs queued at ${QUEUED_RATE} a second; load ${loadavg()[0]?.toFixed(1)}`;
  const { accepted, refused } = result;
  const { runs } = await client.status();
  return {
    rows: [
      { group, name: "accepted", value: accepted.p50, p95: accepted.p99, unit: "ms", n: accepted.n, note: `p99; ${runs.queued} wait` },
      { group, name: "refused", value: refused.p50, p95: refused.p99, unit: "ms", n: refused.n, note: "p99 instead of p95" },
    ],
    targets: [
      {
        name: "p99 of queuing a run",
        measured: accepted.p99,
        unit: "ms",
        atMost: 1_000,
      },
      { name: "runs neither queued nor refused with Retry-After", measured: result.failed, unit: "left", atMost: 0 },
    ],
  };
}

const turns = Array.from({ length: 1_000 }, (_, at) => ({
  say: `Step ${at}.`,
  pauseMs: MODEL_MS,
  calls: [{ tool: "bash", arguments: { command: `echo ${at} >> notes` } }],
}));

function kindsOf(sandbox: string, run: string): LoadOrder["kinds"] {
  const content = `/v1/sandboxes/${sandbox}/files/content?path=/workspace`;
  return [
    { name: "a page of runs", share: 30, method: "GET", path: "/v1/runs?limit=50&state=open" },
    { name: "one run", share: 20, method: "GET", path: `/v1/runs/${run}` },
    { name: "a page of its events", share: 15, method: "GET", path: `/v1/runs/${run}/events?limit=50` },
    { name: "the station's status", share: 12, method: "GET", path: "/v1/status" },
    { name: "sandboxes", share: 8, method: "GET", path: "/v1/sandboxes?limit=50" },
    { name: "a small file read", share: 8, method: "GET", path: `${content}/small` },
    { name: "a small file written", share: 4, method: "PUT", path: `${content}/written`, body: "x".repeat(1024) },
    { name: "a command", share: 3, method: "POST", path: `/v1/sandboxes/${sandbox}/exec`, body: JSON.stringify({ argv: ["true"] }) },
  ];
}

/** More at once than suits two cores: their presence is what we measure. */
async function allowRuns(stateDir: string): Promise<void> {
  await writeFile(join(stateDir, "config.json"), JSON.stringify({ station: { runsMax: RUNS, runsPerOwnerMax: RUNS } }));
}

async function untilAtWork(client: Client): Promise<void> {
  for (const deadline = performance.now() + AT_WORK_MS; ; await delay(LOOK_MS)) {
    const { runs } = await client.status();
    if (runs.atWork === RUNS) return;
    if (performance.now() > deadline) throw new Error(`${runs.atWork} of ${RUNS} runs are at work`);
  }
}

/** Returns how many steps a second the runs make during `work`. */
async function stepsWhile(client: Client, runs: readonly string[], work: () => Promise<unknown>): Promise<number> {
  const count = async () => (await Promise.all(runs.map((run) => client.runs.get(run)))).reduce((sum, { steps }) => sum + steps, 0);
  const [first, startMs] = [await count(), performance.now()];
  await work();
  const tookSeconds = (performance.now() - startMs) / 1000;
  return ((await count()) - first) / tookSeconds;
}

async function load(order: LoadOrder): Promise<LoadResult> {
  const program = join(import.meta.dirname, "station-load-program.ts");
  const child = spawn(process.execPath, [program, JSON.stringify(order)], { stdio: ["ignore", "pipe", "inherit"] });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) throw new Error(`the load ended with ${code}`);
  return JSON.parse(output) as LoadResult;
}
