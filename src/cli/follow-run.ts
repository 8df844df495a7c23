import type { RunEvent } from "../contract/run-event.ts";
import { defined } from "../lib/defined.ts";
import type { RunVerbs } from "../station/runs/verbs.ts";
import type { CliContext } from "./context.ts";
import { createLiveRegion } from "./live-region.ts";
import { createRunView, type RunView } from "./run-view.ts";

export interface FollowOptions {
  json: boolean;
  /** Ends with the run's end unless false: then what is there is shown and nothing waited for. */
  live: boolean;
  fromSeq?: number;
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
  const { fromSeq, live: follow } = options;
  if (!options.json && fromSeq !== undefined) await takeIn(runs, run, { view, beforeSeq: fromSeq });
  const region = createLiveRegion(stdout, { wanted: follow && !options.json, rows: (columns) => view.live(columns) });
  const signal = follow ? options.signal : undefined;
  try {
    for await (const { seq, ...event } of runs.events(run, { follow, ...defined({ fromSeq, signal }) })) {
      if (options.json) await stdout.printJson({ seq, ...event });
      else await region.print(view.lines(event));
      options.onEvent?.(event);
    }
  } finally {
    await region.close();
  }
}

/** What went before is not shown again, but what comes refers to it. */
async function takeIn(runs: RunVerbs, run: string, options: { view: RunView; beforeSeq: number }): Promise<void> {
  if (options.beforeSeq <= 1) return;
  for await (const { seq, ...event } of runs.events(run)) {
    if (seq >= options.beforeSeq) return;
    options.view.lines(event);
  }
}
