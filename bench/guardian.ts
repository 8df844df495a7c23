import { mkdtempDisposable } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { makeEvent } from "../src/contract/event/event-family.ts";
import { GuardianConfig } from "../src/contract/guardian/guardian-config.ts";
import { type NewRunEvent, runEvents } from "../src/contract/run/run-event.ts";
import { noCrash } from "../src/lib/crashpoint.ts";
import type { Log } from "../src/log/log.ts";
import { createSqliteLog } from "../src/log/sqlite/log.ts";
import { Guardian } from "../src/station/guardian/guardian.ts";
import type { Figures } from "./report.ts";

const RUNS = 200;
/** The time of one step, as with agents whose models answer quickly. */
const STEP_MS = 10_000;
const LASTS_MS = 20_000;
const SLICE_MS = 100;
const STREAMED = 12;

/** Measures the guardian's share of one core while 200 runs work: the same events are written with and without it. */
export async function benchGuardian(): Promise<Figures> {
  const without = await shareOfCore({ guarded: false });
  const withIt = await shareOfCore({ guarded: true });
  const share = Math.max(0, withIt.percent - without.percent);
  const group = `guardian over ${RUNS} live runs`;
  return {
    rows: [
      { group, name: "events", value: withIt.eventsPerSecond, unit: "per s", n: withIt.events },
      { group, name: "share of one core, without the guardian", value: without.percent, unit: "%", n: 1, note: "writing the same events" },
      { group, name: "share of one core, with the guardian", value: withIt.percent, unit: "%", n: 1 },
    ],
    targets: [{ name: `share of one core for the guardian over ${RUNS} live runs`, measured: share, unit: "%", atMost: 5 }],
  };
}

async function shareOfCore({ guarded }: { guarded: boolean }): Promise<{ percent: number; events: number; eventsPerSecond: number }> {
  await using dir = await mkdtempDisposable(join(tmpdir(), "caisson-bench-guardian-"));
  await using log = createSqliteLog({ path: join(dir.path, "log.db") });
  const runs = Array.from({ length: RUNS }, (_, at) => `run_${letters(at)}`);
  for (const run of runs) await append(log, run, began(run));
  await using guardian = guarded ? guardianOf(log) : null;
  guardian?.start();
  // Work that is done only once is not measured.
  await writeFor(log, runs, 2_000);
  const before = process.cpuUsage();
  const events = await writeFor(log, runs, LASTS_MS);
  const used = process.cpuUsage(before);
  // Relative to the time that the events represent: a machine that is slow to write them must not look idle.
  return { percent: ((used.user + used.system) / 1000 / LASTS_MS) * 100, events, eventsPerSecond: (events / LASTS_MS) * 1000 };
}

/** Spreads the events evenly over the time, so neither side benefits from a burst. */
async function writeFor(log: Log, runs: readonly string[], lastsMs: number): Promise<number> {
  const perSlice = (RUNS * SLICE_MS) / STEP_MS;
  const startMs = performance.now();
  let events = 0;
  for (let slice = 0; slice * SLICE_MS < lastsMs; slice++) {
    await delay(Math.max(0, startMs + slice * SLICE_MS - performance.now()));
    for (let each = 0; each < perSlice; each++) {
      const at = slice * perSlice + each;
      const run = runs[at % RUNS] ?? "";
      for (const part of stepOf(at)) {
        await append(log, run, part);
        events += part.length;
      }
    }
  }
  return events;
}

/** Yields events as the loop appends them: streamed ones alone, the others a few at a time. */
function* stepOf(at: number): Generator<NewRunEvent[]> {
  const step = 1 + Math.floor(at / RUNS);
  const [call, tool] = [`m${step}`, `t${step}.1`];
  const usage = { inputTokens: 20_000, outputTokens: 300, cachedInputTokens: 0, reasoningTokens: 0 };
  const command = `cd src && sed -n '${at},+80p' file-${at % 50}.ts && npm test -- --filter case-${at}`;
  yield [
    { type: "step.started", data: { step, workedMs: step * STEP_MS } },
    { type: "model.requested", data: { call, step, attempt: 1, model: "scripted", digest: "x", messages: [], contextTokens: 20_000 } },
  ];
  for (let n = 0; n < STREAMED; n++)
    yield [{ type: "model.streamed", data: { call, kind: "text", text: "some words of an answer ".repeat(3) } }];
  const part = { kind: "toolCall" as const, call: tool, providerCall: "p", name: "bash", arguments: { command } };
  yield [
    {
      type: "model.ended",
      data: { call, parts: [{ kind: "text", text: "words ".repeat(60) }, part], usage, costUsd: 0.01, stop: "tools", durationMs: 5000 },
    },
    { type: "tool.requested", data: { call: tool, step, name: "bash", arguments: { command } } },
    { type: "tool.started", data: { call: tool } },
  ];
  const file = { call: tool, path: `src/file-${at % 50}.ts`, kind: "modified" as const, linesAdded: 3, linesRemoved: 1 };
  const text = `a line of output that tells number ${at}\n`.repeat(60);
  yield [
    ...(at % 3 === 0 ? [{ type: "file.changed" as const, data: file }] : []),
    {
      type: "tool.ended",
      data: { call: tool, outcome: "ok", text, details: { exitCode: 0, changedFiles: at % 3 === 0 }, durationMs: 900 },
    },
  ];
}

const append = (log: Log, run: string, events: readonly NewRunEvent[]) =>
  log.append(
    `run/${run}`,
    events.map((event) => makeEvent(runEvents, event)),
  );

function began(run: string): NewRunEvent[] {
  const agent = { name: "coder", digest: "x", definition: { name: "coder", system: "" } };
  const task = `Fix the tests of part ${run} of the parser, and say what was wrong`;
  return [
    { type: "run.created", data: { run, parent: null, session: run, agent, task, model: "scripted", budgets: {} } },
    { type: "run.claimed", data: { owner: "{}", epoch: 1, pid: 1, host: "bench", measured: true } },
  ];
}

function guardianOf(log: Log): Guardian {
  return new Guardian({
    log,
    settings: GuardianConfig.parse({}),
    crashpoint: noCrash,
    look: async () => "",
    judge: async () => null,
    sameFolder: async () => false,
    requeue: async () => undefined,
    onDefect: (error) => process.stderr.write(`${error}\n`),
  });
}

/** Encodes a number in letters that an id allows. */
const letters = (at: number) => at.toString(2).replaceAll("0", "a").replaceAll("1", "b").padStart(12, "a");
