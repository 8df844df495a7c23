import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempDisposable } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { createSqliteLog } from "../src/log/sqlite/log.ts";
import { createTestWorkflows } from "../src/station/workflows/testing-workflows.ts";
import { summarise } from "./measure.ts";
import type { Figures, Row } from "./report.ts";

const STEPS = 1_000;
const WAITING = 10_000;
const RESUMED = 1_000;

/**
 * Measures what the engine adds to each step, what waiting instances cost, and how soon they continue after a crash.
 */
export async function benchWorkflows(): Promise<Figures> {
  const figures = [await benchSteps(), await benchWaiting(), await benchResumed()];
  return { rows: figures.flatMap(({ rows }) => rows), targets: figures.flatMap(({ targets }) => targets) };
}

/**
 * Runs commands that do nothing: each gets the output of the previous one, and every tenth writes to the shared data.
 */
async function benchSteps(): Promise<Figures> {
  await using dir = await mkdtempDisposable(join(tmpdir(), "caisson-bench-workflow-"));
  await using log = createSqliteLog({ path: join(dir.path, "log.db") });
  await using workflows = createTestWorkflows({
    log,
    command: ({ argv }) => ({ status: "completed", output: { exitCode: 0, stdout: argv[1] ?? "" } }),
  });
  // What is compiled and loaded only once is not a step's cost.
  await timesOf(workflows, oneAfterTheOther(50));
  const times = await timesOf(workflows, oneAfterTheOther(STEPS));
  const ofItems = await timesOf(workflows, items(STEPS));
  const [first, last] = [summarise(times.slice(10, 110)), summarise(times.slice(-100))];
  const all = summarise(times);
  const group = `a workflow of ${STEPS} steps`;
  const row = (name: string, { p50, p95, n }: typeof all): Row => ({ group, name, value: p50, p95, unit: "ms", n });
  return {
    rows: [
      row("a step", all),
      row("steps 10 to 110", first),
      row("the last 100", last),
      { group, name: "one item of a foreach, ten at once", value: mean(ofItems), unit: "ms", n: STEPS, note: "mean" },
    ],
    targets: [
      {
        name: `overhead of a step among ${STEPS}`,
        measured: mean(times),
        unit: "ms",
        atMost: 10,
      },
      { name: `the last over the first of ${STEPS} steps`, measured: last.p50 / first.p50, unit: "×", atMost: 1.5 },
    ],
  };
}

const oneAfterTheOther = (count: number) => ({
  name: "long",
  steps: Array.from({ length: count }, (_, at) => ({
    name: `s${at}`,
    kind: "command",
    argv: ["echo", at === 0 ? "begin" : `\${steps.s${at - 1}.output.stdout}`],
    ...(at % 10 === 0 && { result: `data${at}` }),
  })),
});

const items = (count: number) => ({
  name: "wide",
  data: { items: Array.from({ length: count }, (_, at) => at) },
  steps: [
    {
      name: "each",
      kind: "foreach",
      in: "data.items",
      concurrency: 10,
      steps: [{ name: "say", kind: "command", argv: ["echo", `\${string(item)}`] }],
    },
  ],
});

async function timesOf({ verbs }: Pick<ReturnType<typeof createTestWorkflows>, "verbs">, definition: object): Promise<number[]> {
  const { id } = await verbs.start({ definition: definition as never });
  const times: number[] = [];
  let before = performance.now();
  for await (const { type } of verbs.events(id, { follow: true })) {
    if (type !== "workflow.step_ended") continue;
    const now = performance.now();
    times.push(now - before);
    before = now;
  }
  const { finish, text } = await verbs.get(id);
  if (finish !== "completed") throw new Error(`the workflow ended as ${finish}: ${text}`);
  return times;
}

const mean = (values: readonly number[]) => values.reduce((sum, each) => sum + each, 0) / values.length;

async function benchWaiting(): Promise<Figures> {
  await using dir = await mkdtempDisposable(join(tmpdir(), "caisson-bench-workflow-"));
  const path = join(dir.path, "log.db");
  const idle = (await drive(path, "wait", 0).said()) as Waited;
  const first = (await drive(path, "wait", WAITING).said()) as Waited;
  const again = (await drive(path, "wait", WAITING).said()) as Waited;
  const group = `${WAITING} waiting instances`;
  const kB = ({ bytes }: Waited) => bytes / 1000 / WAITING;
  const cpu = (name: string, { percent }: Waited): Row => ({ group, name, value: percent, unit: "%", n: 1, note: "of one core" });
  return {
    rows: [
      { group, name: "until the last one waits", value: first.beganMs, unit: "ms", n: WAITING },
      { group, name: "memory of each, where they started", value: kB(first), unit: "kB", n: WAITING },
      { group, name: "memory of each, in a restarted station", value: kB(again), unit: "kB", n: WAITING },
      cpu("a station without instances", idle),
      cpu("where they started", first),
      cpu("a restarted station", again),
    ],
    targets: [
      { name: `memory of one of ${WAITING} waiting instances`, measured: Math.max(kB(first), kB(again)), unit: "kB", atMost: 1 },
      {
        name: `share of one core for ${WAITING} waiting instances`,
        measured: Math.max(0, Math.max(first.percent, again.percent) - idle.percent),
        unit: "%",
        atMost: 0.5,
      },
    ],
  };
}

interface Waited {
  beganMs: number;
  bytes: number;
  percent: number;
}

/**
 * Each instance had a command running when its station was killed. Measures from the start of the next process to the
 * end of the last instance.
 */
async function benchResumed(): Promise<Figures> {
  await using dir = await mkdtempDisposable(join(tmpdir(), "caisson-bench-workflow-"));
  const path = join(dir.path, "log.db");
  const driver = drive(path, "begin", RESUMED);
  await driver.said();
  driver.child.kill("SIGKILL");
  await driver.closed;
  const start = performance.now();
  const { resumed } = (await drive(path, "resume", RESUMED).said()) as { resumed: number };
  const tookMs = performance.now() - start;
  if (resumed !== RESUMED) throw new Error(`only ${resumed} of ${RESUMED} workflows continued`);
  const group = `${RESUMED} instances after kill -9`;
  return {
    rows: [{ group, name: "until the last one ends", value: tookMs, unit: "ms", n: RESUMED, note: "includes the start of the process" }],
    targets: [{ name: `${RESUMED} instances resumed after kill -9`, measured: tookMs, unit: "ms", atMost: 5_000 }],
  };
}

interface Driving {
  child: ChildProcess;
  closed: Promise<unknown>;
  /** Returns the first line of its output. */
  said(): Promise<unknown>;
}

function drive(path: string, mode: "begin" | "resume" | "wait", count: number): Driving {
  const program = join(import.meta.dirname, "workflows-program.ts");
  const child = spawn(process.execPath, ["--expose-gc", program, path, mode, String(count)], { stdio: ["ignore", "pipe", "inherit"] });
  const closed = once(child, "close");
  const lines = createInterface({ input: child.stdout });
  return {
    child,
    closed,
    async said() {
      const [line] = await Promise.race([once(lines, "line"), closed.then(() => [null])]);
      if (line === null) throw new Error(`the process that drives workflows (${mode}) ended early`);
      if (mode !== "begin") await closed;
      return JSON.parse(line);
    },
  };
}
