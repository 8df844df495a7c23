import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempDisposable, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Client } from "../src/client/connect.ts";
import type { Figures } from "./report.ts";
import { startStationProcess } from "./station-process.ts";

const RUNS = 20;
const RATE = 1_000;
const SECONDS = 60;
/** As long as a quick model takes to answer. */
const MODEL_MS = 500;
/** How long the runs work by themselves first. */
const ALONE_MS = 5_000;
const AT_WORK_MS = 60_000;
const LOOK_MS = 100;

/** What callers of all kinds wait for while a station drives runs; the load comes from a process of its own, at a rate that does not wait for answers. */
export async function benchStationLoad(): Promise<Figures> {
  await using folder = await mkdtempDisposable(join(tmpdir(), "caisson-bench-load-"));
  const model = join(folder.path, "model.json");
  await writeFile(model, JSON.stringify({ turns }));
  await using station = await startStationProcess({ ready: 2, prepare: allowRuns });
  const { client, url, token } = station;
  const { id: sandbox } = await client.sandboxes.create({ spec: {} });
  await client.files.write(sandbox, { path: "/workspace/small" }, Buffer.alloc(1024, "x"));
  const runs = await Promise.all(
    Array.from({ length: RUNS }, (_, at) =>
      // As many steps as the script has: they are to be at work all the time.
      client.runs.start({ task: "Work.", model: `scripted:${model}`, labels: { n: `${at}` }, settings: { maxSteps: turns.length } }),
    ),
  );
  await untilAtWork(client);
  await station.delay();
  await delay(ALONE_MS);
  const alone = await station.delay();
  const result = await load({ url, token, sandbox, run: runs[0]?.run ?? "" });
  const beside = await station.delay();
  for (const { run } of runs) await client.runs.stop(run);
  await client.sandboxes.remove(sandbox);
  const group = `${RATE} requests a second for ${SECONDS} s, beside ${RUNS} runs`;
  const kinds = Object.entries(result.kinds).map(([name, { p50, p99, n }]) => ({
    group,
    name,
    value: p50,
    p95: p99,
    unit: "ms" as const,
    n,
    note: "p99 instead of p95",
  }));
  return {
    rows: [
      ...kinds,
      {
        group,
        name: "all of them",
        value: result.p50,
        p95: result.p99,
        unit: "ms",
        n: result.answered,
        note: `p99 instead of p95; ${result.perSecond.toFixed(0)} answered a second`,
      },
      {
        group,
        name: "lateness of the station's loop, only the runs",
        value: alone.p50Ms,
        p95: alone.p99Ms,
        unit: "ms",
        n: 1,
        note: "p99 instead of p95",
      },
      {
        group,
        name: "the same under the load",
        value: beside.p50Ms,
        p95: beside.p99Ms,
        unit: "ms",
        n: 1,
        note: `p99 instead of p95, at most ${beside.mostMs.toFixed(0)} ms`,
      },
    ],
    targets: [
      {
        name: `of ${RATE} requests a second, failed or unanswered`,
        measured: result.asked - result.answered + result.failed,
        unit: "left",
        atMost: 0,
      },
      { name: `${RATE} requests a second beside ${RUNS} runs, p99`, measured: result.p99, unit: "ms", atMost: 100 },
    ],
  };
}

const turns = Array.from({ length: 1_000 }, (_, at) => ({
  say: `Step ${at}.`,
  pauseMs: MODEL_MS,
  calls: [{ tool: "bash", arguments: { command: `echo ${at} >> notes` } }],
}));

/** More at once than suits two cores: that they are there is what is measured. */
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

export interface LoadResult {
  asked: number;
  answered: number;
  failed: number;
  perSecond: number;
  p50: number;
  p99: number;
  kinds: Record<string, { p50: number; p99: number; n: number }>;
}

async function load(target: { url: string; token: string; sandbox: string; run: string }): Promise<LoadResult> {
  const program = join(import.meta.dirname, "station-load-program.ts");
  const child = spawn(process.execPath, [program, JSON.stringify({ ...target, rate: RATE, seconds: SECONDS })], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let said = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) throw new Error(`the load ended with ${code}`);
  return JSON.parse(said) as LoadResult;
}
