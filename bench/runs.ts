import { type ChildProcess, execFile, spawn } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { StoredEvent } from "../src/log/log.ts";
import { createSqliteLog } from "../src/log/sqlite/log.ts";
import { findChanges } from "../src/workspace/changes.ts";
import { type BenchStation, oci, openBenchStation } from "./bench-station.ts";
import { benchListing } from "./listing.ts";
import { summarise, timeEach } from "./measure.ts";
import type { Figures } from "./report.ts";

const root = join(import.meta.dirname, "..");

/** Measures the cost of runs: a step, durable events, recovery, large folders. */
export async function benchRuns(): Promise<Figures> {
  const dir = await mkdtemp(join(tmpdir(), "caisson-bench-runs-"));
  try {
    const parts = [await benchSteps(dir), await benchLog(dir), await benchListing(dir), await benchRecovery(dir), await benchFolders(dir)];
    return { rows: parts.flatMap((part) => part.rows), targets: parts.flatMap((part) => part.targets) };
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

const bash = (command: string) => ({ tool: "bash", arguments: { command } });
const times = (events: readonly StoredEvent[], type: string) =>
  events.filter((event) => event.type === type).map((event) => Date.parse(event.at));

/** From the start of one step to the start of the next, with a command that does nothing: all of it is our overhead. */
async function benchSteps(dir: string): Promise<Figures> {
  const steps = 2000;
  await using station = await openBenchStation(dir, oci);
  const events = await station.run({
    turns: [...Array.from({ length: steps }, (_, at) => ({ calls: [bash(`: ${at}`)] })), { say: "Done." }],
  });
  const started = times(events, "step.started");
  const gaps = started.slice(1).map((at, index) => at - (started[index] ?? at));
  const early = summariseMean(gaps.slice(10, 210));
  const late = summariseMean(gaps.slice(-200));
  const writing = await station.run({
    turns: [
      ...Array.from({ length: 220 }, (_, at) => ({ calls: [{ tool: "write", arguments: { path: "f", content: `${at}` } }] })),
      { say: "Done." },
    ],
  });
  const written = times(writing, "step.started");
  const files = summariseMean(
    written
      .slice(1)
      .map((at, index) => at - (written[index] ?? at))
      .slice(10, 210),
  );
  return {
    rows: [
      { group: "a step", name: "steps 10 to 210, writing a file", value: files.p50, unit: "ms", p95: files.p95, n: 200 },
      { group: "a step", name: "steps 10 to 210, running an empty shell command", value: early.p50, unit: "ms", p95: early.p95, n: 200 },
      { group: "a step", name: `steps ${steps - 200} to ${steps}`, value: late.p50, unit: "ms", p95: late.p95, n: 200 },
    ],
    targets: [
      { name: "overhead of a step", measured: early.p50, unit: "ms", atMost: 3 },
      { name: "step 2,000 against step 10", measured: late.p50 / early.p50, unit: "×", atMost: 1.3 },
    ],
  };
}

/** The log's times are whole milliseconds; windows of ten make them finer. */
function summariseMean(gaps: readonly number[]) {
  const windows = Array.from(
    { length: Math.floor(gaps.length / 10) },
    (_, at) => gaps.slice(at * 10, at * 10 + 10).reduce((a, b) => a + b, 0) / 10,
  );
  return summarise(windows);
}

async function benchLog(dir: string): Promise<Figures> {
  await using log = createSqliteLog({ path: join(dir, "events.db") });
  const event = { type: "tool.streamed", version: 1, data: { call: "t1.1", text: "a line of some forty characters or so…" } };
  const single = 1000;
  const singleStart = performance.now();
  for (let at = 0; at < single; at++) await log.append("run/single", [event]);
  const singlePerS = (single / (performance.now() - singleStart)) * 1000;
  const each = 2000;
  const manyStart = performance.now();
  await Promise.all(
    Array.from({ length: 50 }, async (_, run) => {
      for (let at = 0; at < each; at += 4) await log.append(`run/${run}`, [event, event, event, event]);
    }),
  );
  const manyPerS = ((50 * each) / (performance.now() - manyStart)) * 1000;
  return {
    rows: [
      { group: "durable events", name: "one after another", value: singlePerS, unit: "per s", n: single },
      { group: "durable events", name: "50 runs at once, 4 per append", value: manyPerS, unit: "per s", n: 50 * each },
    ],
    targets: [
      { name: "durable events with 50 runs", measured: manyPerS, unit: "per s", atLeast: 20_000 },
      { name: "50 runs against single inserts", measured: manyPerS / singlePerS, unit: "×", atLeast: 4 },
    ],
  };
}

/**
 * Measures from kill -9 in the middle of a command, through `caisson resume`, until the log has the new driver.
 * Includes the program's own start.
 */
async function benchRecovery(dir: string): Promise<Figures> {
  const bundle = join(root, "build", `cli-bench-${process.pid}`);
  await promisify(execFile)(process.execPath, [join(root, "scripts", "bundle.ts"), bundle]);
  const home = join(dir, "home");
  const script = join(dir, "recovery.json");
  await writeFile(script, JSON.stringify({ turns: [{ calls: [bash("echo up; sleep 0.6")] }, { say: "Done." }] }));
  const env = { ...process.env, CAISSON_HOME: home, NODE_COMPILE_CACHE: join(dir, "compile-cache") };
  const start = (...argv: string[]) =>
    spawn(process.execPath, [join(bundle, "caisson.mjs"), ...argv], { env, cwd: dir, stdio: ["ignore", "pipe", "inherit"] });
  try {
    const sample: number[] = [];
    for (let at = 0; at < 6; at++) {
      const first = start("run", "work", "--no-workspace", "--json", "--model", `scripted:${script}`);
      const created = await line(first, "run.created");
      await line(first, "tool.streamed");
      first.kill("SIGKILL");
      const killedMs = performance.now();
      const second = start("resume", (created.data as { run: string }).run, "--json");
      await line(second, "run.claimed");
      if (at > 0) sample.push(performance.now() - killedMs);
      await new Promise((resolve) => second.once("close", resolve));
    }
    const { p50, p95, n } = summarise(sample);
    return {
      rows: [
        {
          group: "recovery",
          name: "from kill -9 until the run continues",
          value: p50,
          unit: "ms",
          p95,
          n,
          note: "includes the program's start",
        },
      ],
      targets: [{ name: "recovery", measured: p50, unit: "ms", atMost: 1000 }],
    };
  } finally {
    await rm(bundle, { recursive: true, force: true });
  }
}

function line(child: ChildProcess, type: string): Promise<{ data: unknown }> {
  return new Promise((resolve, reject) => {
    let text = "";
    const look = (chunk: Buffer) => {
      text += chunk.toString();
      const found = text
        .split("\n")
        .slice(0, -1)
        .find((each) => each.includes(`"type":"${type}"`));
      if (found === undefined) return;
      child.stdout?.off("data", look);
      resolve(JSON.parse(found) as { data: unknown });
    };
    child.stdout?.on("data", look);
    child.once("close", () => reject(new Error(`ended without ${type}: ${text}`)));
  });
}

async function benchFolders(dir: string): Promise<Figures> {
  const empty = join(dir, "empty");
  const large = join(dir, "large");
  await mkdir(empty);
  for (let folder = 0; folder < 200; folder++) {
    await mkdir(join(large, `d${folder}`), { recursive: true });
    await Promise.all(
      Array.from({ length: 100 }, (_, file) => writeFile(join(large, `d${folder}`, `f${file}.txt`), `file ${file}\nof folder ${folder}\n`)),
    );
  }
  await using station = await openBenchStation(dir, oci);
  const first = (folder: string) => async () => {
    const events = await station.run({ turns: [{ calls: [bash("true")] }, { say: "Done." }] }, { folder });
    return (times(events, "tool.started")[0] ?? 0) - (times(events, "run.created")[0] ?? 0);
  };
  const sampleOf = async (measure: () => Promise<number>) => {
    const values: number[] = [];
    for (let at = 0; at < 8; at++) values.push(await measure());
    return summarise(values.slice(1));
  };
  const small = await sampleOf(first(empty));
  const big = await sampleOf(first(large));
  const change = 'for d in $(seq 0 99); do echo changed >> "d$d/f$d.txt"; done';
  const events = await station.run({ turns: [{ calls: [bash(change)] }, { say: "Done." }] }, { folder: large });
  const diff = await timeDiff(station, { folder: large, layer: station.layerOf(events) });
  return {
    rows: [
      { group: "start to first tool call", name: "an empty folder", value: small.p50, unit: "ms", p95: small.p95, n: small.n },
      { group: "start to first tool call", name: "a folder of 20,000 files", value: big.p50, unit: "ms", p95: big.p95, n: big.n },
      { group: "diff", name: "100 changed files among 20,000", value: diff.p50, unit: "ms", p95: diff.p95, n: diff.n },
    ],
    targets: [
      { name: "first tool call, 20,000 files against none", measured: big.p50 / small.p50, unit: "×", atMost: 3 },
      { name: "diff of 100 changed files among 20,000", measured: diff.p50, unit: "ms", atMost: 300 },
    ],
  };
}

async function timeDiff(station: BenchStation, where: { folder: string; layer: string }) {
  const { SandboxConfig } = await import("../src/contract/sandbox/sandbox.ts");
  const workspace = { kind: "folder" as const, path: where.folder, access: "overlay" as const, layer: where.layer };
  await using sandbox = await station.runtime.create(SandboxConfig.parse({ workspace }));
  return await timeEach({
    n: 10,
    once: async () => {
      const { changes } = await findChanges({
        sandbox,
        lower: where.folder,
        layers: [join(where.layer, "upper")],
        sinceMs: 0,
        stateDir: station.stateDir,
      });
      if (changes.length !== 100) throw new Error(`${changes.length} files differ, not 100`);
    },
  });
}
