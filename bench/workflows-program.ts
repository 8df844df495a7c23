/**
 * Drives workflows on a log as a station does, with commands that complete at once or never: `workflows-program.ts LOG
 * MODE COUNT`. `begin` starts COUNT workflows whose command never ends, prints a line when all have started, and waits
 * to be killed. `resume` drives all that exist, whose commands now complete, and prints a line when the last has ended.
 * `wait` starts COUNT workflows that wait for a time, a signal or a person, and prints what they cost.
 */
import { setTimeout as delay } from "node:timers/promises";
import { noCrash } from "../src/lib/crashpoint.ts";
import { createSqliteLog } from "../src/log/sqlite/log.ts";
import { createDriver } from "../src/station/durable/driver.ts";
import { createJobs } from "../src/station/durable/durable-verbs.ts";
import { createLocalWorkflows, createSubWorkflowWork, type WorkflowJobs } from "../src/station/workflows/local-workflows.ts";
import { createWorkflowKind, type StepOutcome } from "../src/station/workflows/workflow-kind.ts";
import { evaluateHere } from "../src/workflow/expressions/evaluate.ts";
import { readDefinition } from "../src/workflow/validate.ts";

const AT_ONCE = 100;
const IDLE_MS = 20_000;

const [path = "", mode = "", count = "0"] = process.argv.slice(2);
const wanted = Number(count);
const say = (value: object) => process.stdout.write(`${JSON.stringify(value)}\n`);
const done: StepOutcome = { status: "completed", output: { exitCode: 0, stdout: "", stderr: "" } };
const startedEffects = new Set<string>();

await using log = createSqliteLog({ path });
const kind = createWorkflowKind({
  evaluator: evaluateHere,
  agent: {},
  merge: {},
  workflow: createSubWorkflowWork((): WorkflowJobs => jobs, evaluateHere),
  command: {
    async perform(effect) {
      startedEffects.add(effect.id);
      if (mode !== "begin") return done;
      if (startedEffects.size === wanted) say({ begun: startedEffects.size });
      return await new Promise<never>(() => {});
    },
  },
  clean: async () => ({ sandboxes: 0 }),
});
await using driver = createDriver({
  log,
  kinds: [kind],
  holder: `process ${process.pid}`,
  holderGone: (owner) => owner !== `process ${process.pid}`,
  crashpoint: noCrash,
  runs: { isOver: async () => true, tend: async () => undefined },
  onDefect: (error) => process.stderr.write(`${error}\n`),
});
const jobs: WorkflowJobs = createJobs(kind, { log, driver, crashpoint: noCrash });
const verbs = createLocalWorkflows(jobs, { evaluate: evaluateHere, check: async (definition) => readDefinition(definition).problems });

async function startAll(definition: (at: number) => object): Promise<void> {
  for (let at = 0; at < wanted; at += AT_ONCE) {
    await Promise.all(Array.from({ length: AT_ONCE }, (_, each) => verbs.start({ definition: definition(at + each) as never })));
  }
}

async function untilNone(status: "running" | undefined): Promise<void> {
  while ((await jobs.list({ state: "open", ...(status && { status }), limit: 1 })).items.length > 0) await delay(50);
}

const measureMemory = () => {
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
};

const waiting = [
  { name: "pause", kind: "timer", for: "24h" },
  { name: "agree", kind: "approval", text: "May it go on?" },
  { name: "hear", kind: "signal", signal: "deployed" },
];

// What is loaded and stored only once is not an instance's cost.
await jobs.list({ state: "open", limit: 1 });
const before = measureMemory();
await driver.serve();
if (mode === "begin") {
  await startAll((at) => ({ name: `resumed-${at}`, steps: [{ name: "work", kind: "command", argv: ["make"] }] }));
  await delay(600_000);
} else if (mode === "resume") {
  await untilNone(undefined);
  say({ resumed: startedEffects.size });
} else {
  const isAgain = (await jobs.list({ state: "open", limit: 1 })).items.length > 0;
  const beginningMs = performance.now();
  if (!isAgain) await startAll((at) => ({ name: `waiting-${at}`, steps: [waiting[at % waiting.length]] }));
  await untilNone("running");
  const beganMs = performance.now() - beginningMs;
  await driver.idle();
  await delay(1_000);
  const bytes = measureMemory() - before;
  const cpu = process.cpuUsage();
  await delay(IDLE_MS);
  const { user, system } = process.cpuUsage(cpu);
  say({ beganMs, bytes, percent: ((user + system) / 1000 / IDLE_MS) * 100 });
}
