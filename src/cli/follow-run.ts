import type { RunEvent } from "../contract/run-event.ts";
import { runStream } from "../station/runs/head-of-run.ts";
import { parseRunEvent } from "../station/runs/owned-journal.ts";
import type { CliContext } from "./context.ts";
import { createLiveRegion } from "./live-region.ts";
import { createRunView, type RunView } from "./run-view.ts";
import type { LocalStation } from "./station.ts";

const PAGE = 1000;

export interface FollowOptions {
  json: boolean;
  /** Ends with the run's end unless false: then what is there is shown and nothing waited for. */
  live: boolean;
  fromSeq?: number;
  signal: AbortSignal;
  /** Hears every event after it was shown. */
  onEvent?: (event: RunEvent) => void;
}

/** Shows a run: its past, then what comes, until it ends. Lines for people, JSON lines for programs; on a terminal a few rows below say what it is doing. */
export async function followRun(context: CliContext, station: LocalStation, run: string, options: FollowOptions): Promise<void> {
  const { stdout } = context;
  const view = createRunView({ columns: () => (stdout.isTerminal ? stdout.size().cols : null) });
  const fromSeq = options.fromSeq ?? 1;
  if (!options.json && fromSeq > 1) await takeIn(station, run, { view, beforeSeq: fromSeq });
  const region = createLiveRegion(stdout, { wanted: options.live && !options.json, rows: (columns) => view.live(columns) });
  const show = async (stored: Parameters<typeof parseRunEvent>[0]): Promise<RunEvent> => {
    const event = parseRunEvent(stored);
    if (options.json) await stdout.printJson({ seq: stored.seq, ...event });
    else await region.print(view.lines(event));
    options.onEvent?.(event);
    return event;
  };
  try {
    if (!options.live) {
      for (let next = fromSeq; ; ) {
        const events = await station.log.read(runStream(run), { fromSeq: next, limit: PAGE });
        for (const event of events) await show(event);
        if (events.length < PAGE) return;
        next += events.length;
      }
    }
    for await (const stored of station.log.subscribe(runStream(run), { fromSeq, signal: options.signal })) {
      const event = await show(stored);
      if (event.type === "run.ended") return;
    }
  } finally {
    await region.close();
  }
}

/** What went before is not shown again, but what comes refers to it. */
async function takeIn(station: LocalStation, run: string, options: { view: RunView; beforeSeq: number }): Promise<void> {
  for (let next = 1; next < options.beforeSeq; ) {
    const events = await station.log.read(runStream(run), { fromSeq: next, limit: Math.min(PAGE, options.beforeSeq - next) });
    if (events.length === 0) return;
    for (const event of events) options.view.lines(parseRunEvent(event));
    next += events.length;
  }
}
