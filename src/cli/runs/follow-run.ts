import { setTimeout as sleep } from "node:timers/promises";
import type { RunEvent } from "../../contract/run/run-event.ts";
import type { RunView as RunFacts } from "../../contract/run/run-verbs.ts";
import { defined } from "../../lib/defined.ts";
import { ignore } from "../../lib/failures.ts";
import type { RunVerbs } from "../../verbs/runs.ts";
import type { CliContext } from "../context.ts";
import { dim } from "../terminal/line.ts";
import { createLiveRegion } from "../terminal/live-region.ts";
import { createRunView, type RunView } from "./run-view.ts";

const DRIVER_CHECK_MS = 1_000;
/** How long a background process may take to start. */
const START_MS_MAX = 20_000;

export interface FollowOptions {
  json: boolean;
  /** Whether to follow the run until it ends, instead of only showing the stored events. */
  live: boolean;
  fromSeq?: number;
  /** The maximum number of stored events to show, for people. The output says how many are left out. */
  lastEvents?: number;
  /** Also ends if no process drives the run, because no more events would come. */
  whileDriven?: boolean;
  signal: AbortSignal;
  /** Receives every event after it was shown. */
  onEvent?: (event: RunEvent) => void;
}

/**
 * Shows a run's past events, then new ones until it ends: lines for people, JSON lines for programs. On a terminal, a
 * few rows below show the current activity.
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
  let printing = Promise.resolve();
  try {
    for await (const { seq, ...event } of runs.events(run, { follow, ...defined({ fromSeq, signal }) })) {
      printing = options.json ? stdout.printJson({ seq, ...event }) : region.print(view.lines(event));
      if (seq === cut?.lastSeq) view.takeFigures(cut.facts);
      await (options.onEvent === undefined ? stdout.room() : printing);
      options.onEvent?.(event);
      seenSeq = seq;
    }
  } finally {
    over.abort();
    await printing;
    await region.close();
    await watching;
  }
}

const isLeft = (view: RunFacts) => isUndriven(view) || waitsForMessage(view);

/** Polls for the driver, because a process that died sends nothing. Waits until all its events are shown. */
async function abortWhenUndriven(
  runs: RunVerbs,
  run: string,
  { over, seenSeq }: { over: AbortController; seenSeq: () => number },
): Promise<void> {
  for (; !over.signal.aborted; await ignore(sleep(DRIVER_CHECK_MS, undefined, { signal: over.signal }), "the loop checks the signal")) {
    const view = await runs.get(run);
    // The driver may have ended the run after we read its events and before we looked for the driver, so we look again.
    if (isLeft(view) && seenSeq() >= view.seq && isLeft(await runs.get(run))) over.abort();
  }
}

/** Whether the run is a fork, or was rewound, and continues only when it gets a message. */
export function waitsForMessage({ status, paused }: Pick<RunFacts, "status" | "paused">): boolean {
  return status === "paused" && (paused?.why === "forked" || paused?.why === "rewound");
}

/** Whether a run has not ended but no process drives it. A new run's process may still be starting. */
export function isUndriven({ status, createdAt }: Pick<RunFacts, "status" | "createdAt">): boolean {
  return status === "interrupted" || (status === "created" && Date.now() - Date.parse(createdAt) > START_MS_MAX);
}

/** Shows the first event, which identifies the run, and skips to the last ones. Returns null if nothing is left out. */
async function beginLate(
  { stdout }: CliContext,
  runs: RunVerbs,
  run: string,
  { view, lastEvents }: { view: RunView; lastEvents: number },
): Promise<{ fromSeq: number; lastSeq: number; facts: RunFacts } | null> {
  const facts = await runs.get(run);
  // Minus one, because the first event is shown as well.
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

/** Feeds earlier events to the view without showing them, because later ones refer to them. */
async function takeIn(runs: RunVerbs, run: string, options: { view: RunView; beforeSeq: number }): Promise<void> {
  if (options.beforeSeq <= 1) return;
  for await (const { seq, ...event } of runs.events(run)) {
    if (seq >= options.beforeSeq) return;
    options.view.lines(event);
  }
}
