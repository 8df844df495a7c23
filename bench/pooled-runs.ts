import { mkdir, mkdtempDisposable, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { summarise } from "./measure.ts";
import type { Figures, Row } from "./report.ts";
import { type StationProcess, startStationProcess } from "./station-process.ts";

const GROUP = "a run to its first tool call, through a station";
const READY = 2;
const ROUNDS = 30;
const WARM_UP = 5;

/**
 * Measures from the request that starts a run to the start of its first tool, on a station that keeps sandboxes ready
 * and on one that does not. They take turns.
 */
export async function benchPooledRuns(): Promise<Figures> {
  await using dir = await mkdtempDisposable(join(tmpdir(), "caisson-bench-runs-"));
  const folder = join(dir.path, "project");
  await mkdir(folder);
  const script = join(dir.path, "script.json");
  await writeFile(script, JSON.stringify({ turns: [{ calls: [{ tool: "bash", arguments: { command: "true" } }] }, { say: "Done." }] }));
  await using pooled = await startStationProcess({ ready: READY });
  await using cold = await startStationProcess({ ready: 0 });
  const request = { task: "work", model: `scripted:${script}`, source: { kind: "folder", path: folder } } as const;
  const stations = { pooled, cold };
  const times = { pooled: [] as number[], cold: [] as number[] };
  for (let round = -WARM_UP; round < ROUNDS; round++) {
    for (const name of ["pooled", "cold"] as const) {
      for (const station of Object.values(stations)) await untilIdle(station);
      const ms = await firstTool(stations[name], request);
      if (round >= 0) times[name].push(ms);
    }
  }
  for (const station of Object.values(stations)) await untilIdle(station);
  const given = (await pooled.client.machine.stats()).pool;
  if (given?.fresh !== 0) throw new Error(`${given?.fresh} runs did not come from the pool`);
  const row = (name: string, { p50, p95, n }: { p50: number; p95: number; n: number }): Row => ({
    ...{ group: GROUP, name, value: p50, unit: "ms", p95, n },
  });
  const [fast, slow] = [summarise(times.pooled), summarise(times.cold)];
  return {
    rows: [row("from the pool", fast), row("cold", slow)],
    targets: [{ name: "first tool call of a run from the pool: faster than cold", measured: slow.p50 / fast.p50, unit: "×", atLeast: 2 }],
  };
}

/** Resolves when the pool is full and earlier sandboxes are gone, so that neither takes time from what is measured. */
async function untilIdle({ client }: StationProcess): Promise<void> {
  for (;;) {
    const { pool } = await client.machine.stats();
    const { sandboxes } = await client.sandboxes.list({});
    if (sandboxes.length === 0 && (pool === null || pool.waiting === pool.size)) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function firstTool({ client }: StationProcess, request: { task: string; model: string; source: object }): Promise<number> {
  const startMs = performance.timeOrigin + performance.now();
  const { run } = await client.runs.start(request as never);
  let toolMs = Number.NaN;
  for await (const { type, at } of client.runs.events(run, { follow: true })) {
    if (type === "tool.started" && Number.isNaN(toolMs)) toolMs = Date.parse(at) - startMs;
  }
  return toolMs;
}
