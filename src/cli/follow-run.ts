import type { RunEvent } from "../contract/run-event.ts";
import { parseRunEvent, runStream } from "../station/journal.ts";
import type { CliContext } from "./context.ts";
import { createRunView } from "./run-view.ts";
import type { LocalStation } from "./station.ts";
import { createStyle } from "./style.ts";

const STATUS_MS = 250;

export interface FollowOptions {
  json: boolean;
  /** Ends with the run's end unless false: then what is there is shown and nothing waited for. */
  live: boolean;
  fromSeq?: number;
  signal: AbortSignal;
  /** Hears every event after it was shown. */
  onEvent?: (event: RunEvent) => void;
}

/** Shows a run: its past, then what comes, until it ends. Lines for people, JSON lines for programs; on a terminal a line below says what it is doing. */
export async function followRun(context: CliContext, station: LocalStation, run: string, options: FollowOptions): Promise<void> {
  const { stdout } = context;
  const style = createStyle({ isTerminal: stdout.isTerminal, noColor: context.variable("NO_COLOR") !== undefined });
  let startedMs = Date.now();
  const view = createRunView({ style, startedMs: () => startedMs });
  const line = createStatusLine(context, options.live && !options.json, () => style.dim(view.status()));
  const show = async (stored: Parameters<typeof parseRunEvent>[0]): Promise<RunEvent> => {
    const event = parseRunEvent(stored);
    if (event.type === "run.created") startedMs = Date.parse(event.at);
    if (options.json) await stdout.write(`${JSON.stringify({ seq: stored.seq, ...event })}\n`);
    else await line.print(view.lines(event));
    options.onEvent?.(event);
    return event;
  };
  try {
    if (!options.live) {
      for (let fromSeq = options.fromSeq ?? 1; ; ) {
        const events = await station.log.read(runStream(run), { fromSeq, limit: 1000 });
        for (const event of events) await show(event);
        if (events.length < 1000) return;
        fromSeq += events.length;
      }
    }
    for await (const stored of station.log.subscribe(runStream(run), { fromSeq: options.fromSeq ?? 1, signal: options.signal })) {
      const event = await show(stored);
      if (event.type === "run.ended") return;
    }
  } finally {
    await line.clear();
  }
}

/** A line that is drawn again and again below what is printed. Nothing at all where there is no terminal. */
function createStatusLine(context: CliContext, wanted: boolean, text: () => string) {
  const { stdout } = context;
  const shown = wanted && stdout.isTerminal;
  const clear = shown ? "\r\x1b[K" : "";
  const draw = () => {
    if (shown && !stdout.pending()) void stdout.write(`${clear}${text().slice(0, stdout.size().cols + 8)}`);
  };
  const timer = shown ? setInterval(draw, STATUS_MS) : undefined;
  return {
    async print(lines: readonly string[]) {
      if (lines.length > 0) await stdout.write(`${clear}${lines.join("\n")}\n`);
    },
    async clear() {
      clearInterval(timer);
      if (shown) await stdout.write(clear);
    },
  };
}
