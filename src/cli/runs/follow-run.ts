import { setTimeout as sleep } from "node:timers/promises";
import type { RunEvent } from "../../contract/run-event.ts";
import type { RunView as RunFacts } from "../../contract/run-verbs.ts";
import { defined } from "../../lib/defined.ts";
import type { RunVerbs } from "../../station/runs/verbs.ts";
import type { CliContext } from "../context.ts";
import { dim } from "../terminal/line.ts";
import { createLiveRegion } from "../terminal/live-region.ts";
import { createRunView, type RunView } from "./run-view.ts";

const DRIVER_CHECK_MS = 1_000;
/** How long a process in the background may take to begin. */
const START_MS_MAX = 20_000;

export interface FollowOptions {
  json: boolean;
  /** Ends with the run's end unless false: then what is there is shown and nothing waited for. */
  live: boolean;
  fromSeq?: number;
  /** Shows at most this many of the stored events, and says how many it left out. For people. */
  lastEvents?: number;
  /** Ends also when nobody drives the run: nothing would come. */
  whileDriven?: boolean;
  signal: AbortSignal;
  /** Hears every event after it was shown. */
  onEvent?: (event: RunEvent) => void;
}

/**
 * Shows a run: its past, then what comes, until it ends. Lines for people, JSON lines for programs; on a terminal a few
 * rows below say what it is doing.
 */
export async function followRun(context: CliContext, runs: RunVerbs, run: string, options: FollowOptions): Promise<void> {
  const { stdout } = context;
  const view = createRunView({ columns: () => (stdout.isTerminal ? stdout.size().cols : null) });
  const { live: follow } = options;
  const over = new AbortController();
  const cut = options.lastEvents === undefined ? null : await beginLate(context, runs, run, { view, lastEvents: options.lastEvents });
  const fromSeq = cut === null ? options.fromSeq : cut.fromSeq;
  let seenSeq = (fromSeq ?? 1) - 1;
  if (!options.json && options.fromSeq !== undefined) await takeIn(runs, run, { view, beforeSeq: options.fromSeq });
  const region = createLiveRegion(stdout, { wanted: follow && !options.json, rows: (columns) => view.live(columns) });
  const signal = follow ? AbortSignal.any([options.signal, over.signal]) : undefined;
  const watching = follow && options.whileDriven === true ? abortWhenUndriven(runs, run, { over, seenSeq: () => seenSeq }) : undefined;
  let shown = Promise.resolve();
  try {
    for await (const { seq, ...event } of runs.events(run, { follow, ...defined({ fromSeq, signal }) })) {
      shown = options.json ? stdout.printJson({ seq, ...event }) : region.print(view.lines(event));
      if (seq === cut?.lastSeq) view.takeFigures(cut.facts);
      await (options.onEvent === undefined ? stdout.room() : shown);
      options.onEvent?.(event);
      seenSeq = seq;
    }
  } finally {
    over.abort();
    await shown;
    await region.close();
    await watching;
  }
}

/** A process that died says nothing, so it has to be looked for. Everything that it did say is shown before. */
async function abortWhenUndriven(
  runs: RunVerbs,
  run: string,
  { over, seenSeq }: { over: AbortController; seenSeq: () => number },
): Promise<void> {
  for (; !over.signal.aborted; await sleep(DRIVER_CHECK_MS, undefined, { signal: over.signal }).catch(() => undefined)) {
    const view = await runs.get(run);
    // Who drove it may have ended it between the look at its events and the look for its driver; a second look sees
    // that.
    if (isUndriven(view) && seenSeq() >= view.seq && isUndriven(await runs.get(run))) over.abort();
  }
}

/** Not over, and nobody drives it. A run that was made a moment ago may not have its process yet. */
export function isUndriven({ status, createdAt }: Pick<RunFacts, "status" | "createdAt">): boolean {
  return status === "interrupted" || (status === "created" && Date.now() - Date.parse(createdAt) > START_MS_MAX);
}

/** The beginning says which run it is; of the rest only the end is shown. Null for a run that is shown whole. */
async function beginLate(
  { stdout }: CliContext,
  runs: RunVerbs,
  run: string,
  { view, lastEvents }: { view: RunView; lastEvents: number },
): Promise<{ fromSeq: number; lastSeq: number; facts: RunFacts } | null> {
  const facts = await runs.get(run);
  // The first event is shown as well.
  const leftOut = facts.seq - lastEvents - 1;
  if (leftOut <= 0) return null;
  for await (const { seq: _, ...first } of runs.events(run)) {
    await stdout.print(view.lines(first));
    break;
  }
  const hint = `\`caisson attach --all ${run}\` shows them`;
  await stdout.print(dim(`… ${leftOut.toLocaleString("en")} events are left out; ${hint}`));
  return { fromSeq: leftOut + 2, lastSeq: facts.seq, facts };
}

/** What went before is not shown again, but what comes refers to it. */
async function takeIn(runs: RunVerbs, run: string, options: { view: RunView; beforeSeq: number }): Promise<void> {
  if (options.beforeSeq <= 1) return;
  for await (const { seq, ...event } of runs.events(run)) {
    if (seq >= options.beforeSeq) return;
    options.view.lines(event);
  }
}
