import { join } from "node:path";
import { AgentDefinition } from "../src/contract/agent/agent.ts";
import type { Log, NewEvent } from "../src/log/log.ts";
import { createSqliteLog } from "../src/log/sqlite/log.ts";
import { foldRun } from "../src/station/runs/owned-journal.ts";
import { headOfRun } from "../src/station/vocabulary/head-of-run.ts";
import { runStream } from "../src/station/vocabulary/station-names.ts";
import type { Figures } from "./report.ts";

const RUNS = 1000;
const EVENTS = 1000;
/** Runs that are appended at the same time. */
const TOGETHER = 50;
const APPENDED_MAX = 1000;
/** Folding all of them takes half a minute; a sample tells as much. */
const FOLDED = 50;

/** Measures `ps` and `send` with many long runs: by the heads that the log stores, and by folding the runs. */
export async function benchListing(dir: string): Promise<Figures> {
  await using log = createSqliteLog({ path: join(dir, "listing.db") });
  const names = await appendRuns(log, { count: RUNS, events: EVENTS, open: RUNS });
  const timed = async (work: () => Promise<unknown>): Promise<number> => {
    const startMs = performance.now();
    await work();
    return performance.now() - startMs;
  };
  const [first = "", second = ""] = names;
  const listMs = await timed(() => log.heads({ prefix: "run/", open: true, limit: RUNS }));
  const lookMs = await timed(() => headOfRun(log, first));
  const foldMs = await timed(async () => {
    for (const run of names.slice(0, FOLDED)) await foldRun(log, run);
  });
  const foldOneMs = await timed(() => foldRun(log, second));
  const group = "1,000 runs of 1,000 events";
  return {
    rows: [
      { group, name: "`ps`, from the stored heads", value: listMs, unit: "ms", n: RUNS },
      { group, name: "`ps`, by folding all events", value: (foldMs / FOLDED) * RUNS, unit: "ms", n: FOLDED },
      { group, name: "`send`, `answer`, `stop`: one run, from its head", value: lookMs, unit: "ms", n: 1 },
      { group, name: "one run, by folding its events", value: foldOneMs, unit: "ms", n: 1 },
    ],
    targets: [{ name: "`ps` with 1,000 runs of 1,000 events", measured: listMs, unit: "ms", atMost: 250 }],
  };
}

/** Appends runs of that many events each, the newest `open` of which have not ended; returns their names. */
export async function appendRuns(log: Log, options: { count: number; events: number; open: number }): Promise<string[]> {
  const { count, events, open } = options;
  const names = Array.from(
    { length: count },
    (_, at) =>
      `run_bench${String(at)
        .padStart(7, "a")
        .replaceAll(/[0189]/g, "b")}${at}`,
  );
  for (let from = 0; from < count; from += TOGETHER) {
    const some = names.slice(from, from + TOGETHER);
    await Promise.all(some.map((run, at) => log.append(runStream(run), eventsOf(run, { events, ended: from + at < count - open }))));
  }
  return names;
}

/** Appends one finished run of that many events. */
export async function appendLongRun(log: Log, run: string, events: number): Promise<void> {
  const all = eventsOf(run, { events, ended: true });
  for (let from = 0; from < all.length; from += APPENDED_MAX) await log.append(runStream(run), all.slice(from, from + APPENDED_MAX));
}

function eventsOf(run: string, { events, ended }: { events: number; ended: boolean }): NewEvent[] {
  const usage = { inputTokens: 10, outputTokens: 10, cachedInputTokens: 0, reasoningTokens: 0 };
  const definition = AgentDefinition.parse({ name: "bench", system: "You work." });
  const created: NewEvent = {
    type: "run.created",
    version: 1,
    data: {
      run: "run_aaaaaaaaaaaa",
      parent: null,
      session: run.replaceAll("_", "-").toLowerCase(),
      agent: { name: "bench", digest: "0", definition: definition as never },
      task: "work",
      model: "scripted",
      budgets: {},
    },
  };
  const steps = Array.from({ length: Math.floor((events - 2) / 3) }, (_, at): NewEvent[] => [
    { type: "step.started", version: 1, data: { step: at + 1 } },
    { type: "tool.streamed", version: 1, data: { call: `t${at + 1}.1`, text: "a line of some forty characters or so…" } },
    {
      type: "model.ended",
      version: 1,
      data: {
        call: `m${at + 1}`,
        parts: [{ kind: "text", text: "some words of the model ".repeat(5) }],
        usage,
        costUsd: 0.001,
        stop: "end",
        durationMs: 10,
      },
    },
  ]).flat();
  const end: NewEvent = { type: "run.ended", version: 1, data: { reason: "done", text: "Done.", steps: 1, usage, costUsd: 0.001 } };
  return [created, ...steps, ...(ended ? [end] : [])];
}
