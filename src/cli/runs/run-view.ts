import { handle } from "../../contract/event/handlers.ts";
import type { RunEvent } from "../../contract/run/run-event.ts";
import type { RunView as RunFacts } from "../../contract/run/run-verbs.ts";
import { showDuration } from "../../lib/quantity.ts";
import { dim, type Line, line } from "../terminal/line.ts";
import { createMarkdownView } from "../terminal/markdown.ts";
import { cutToWidth, plainText, wrapText } from "../terminal/plain-text.ts";
import { TEXT_COLUMNS_MAX } from "./event-lines.ts";
import { type RunViewState, runEventLines } from "./run-event-lines.ts";

/** The number of live rows for a running tool's newest output, or for streamed text. */
const LIVE_ROWS = 4;
const FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏";

/** Turns a run's events into lines for people, the same for a live run, `attach` and `logs`. */
export interface RunView {
  /** Returns the permanent lines for an event; most have none. */
  lines(event: RunEvent): Line[];
  /**
   * Shows the current activity: streamed text, the newest output, a line of figures. Each row fits. Empty while the run
   * waits for a person.
   */
  live(columns: number): Line[];
  /** Sets the figures after the last event of a run whose beginning was left out. */
  takeFigures(run: Pick<RunFacts, "steps" | "usage" | "costUsd">): void;
}

export function createRunView(options: { columns: () => number | null }): RunView {
  const state = createState(options);
  let frame = 0;
  return {
    lines: (event) => handle(runEventLines, event, state) ?? [],
    takeFigures({ steps, usage, costUsd }) {
      state.step = steps;
      state.tokens = usage.inputTokens + usage.outputTokens;
      state.costUsd = costUsd;
    },
    live(columns) {
      if (state.waiting) return [];
      frame = (frame + 1) % FRAMES.length;
      const { said: streamedText, output, step, startedMs, tokens, costUsd } = state;
      const width = columns - 1;
      const words =
        streamedText.trim() === "" ? [] : wrapText(streamedText, state.textColumns()).map((row) => line`${cutToWidth(`  ${row}`, width)}`);
      const outputLines = output.trimEnd() === "" ? [] : output.trimEnd().split("\n");
      const rows = words.length > 0 ? words : outputLines.map((row) => dim(cutToWidth(`    ${row}`, width)));
      const cost = costUsd === null ? "" : ` · $${costUsd.toFixed(4)}`;
      const figures = `step ${step} · ${showDuration(Date.now() - startedMs)} · ${tokens.toLocaleString("en")} tokens${cost}`;
      return [...rows.slice(-LIVE_ROWS), dim(cutToWidth(`${FRAMES[frame]} ${figures} · ${activity(state)}`, width))];
    },
  };
}

function createState(options: { columns: () => number | null }): RunViewState {
  /** Without a terminal, lines are not wrapped, because programs search for text in them. */
  const textColumns = () => {
    const columns = options.columns();
    return columns === null ? Number.POSITIVE_INFINITY : Math.max(20, Math.min(TEXT_COLUMNS_MAX, columns) - 2);
  };
  const markdown = createMarkdownView(textColumns);
  return {
    tools: new Map(),
    running: new Set(),
    said: "",
    output: "",
    step: 0,
    costUsd: 0,
    tokens: 0,
    doing: "starting",
    startedMs: Date.now(),
    turn: null,
    waiting: false,
    textColumns,
    speak(text, { finish }) {
      this.said += plainText(text);
      const whole = this.said.split("\n");
      this.said = finish ? "" : (whole.pop() ?? "");
      return [...whole.flatMap((each) => markdown.add(each)), ...(finish ? markdown.end() : [])].map((row) =>
        row.text === "" ? row : line`  ${row}`,
      );
    },
  };
}

/** Describes the oldest running call, or else what the run is doing. */
function activity({ running, tools, doing }: RunViewState): string {
  const [first] = running;
  const tool = first === undefined ? undefined : tools.get(first);
  if (!tool) return doing;
  const others = running.size > 1 ? ` and ${running.size - 1} more` : "";
  return `${tool.name} ${showDuration(Math.max(0, Date.now() - tool.startedMs))}${others} ${tool.about}`;
}
