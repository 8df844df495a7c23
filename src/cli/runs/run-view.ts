import type { RunEvent } from "../../contract/run-event.ts";
import type { RunView as RunFacts } from "../../contract/run-verbs.ts";
import { showDuration } from "../../lib/quantity.ts";
import { unreachable } from "../../lib/unreachable.ts";
import { networkLine } from "../network/network-view.ts";
import { guardianLines } from "../station/guardian-view.ts";
import { watchLines } from "../station/health-view.ts";
import { bad, bold, dim, good, type Line, line } from "../terminal/line.ts";
import { createMarkdownView } from "../terminal/markdown.ts";
import { cutToWidth, plainText, wrapText } from "../terminal/plain-text.ts";
import { aboutCall, fileLine, fold, headed, TEXT_COLUMNS_MAX } from "./event-lines.ts";

/** Rows of a running tool's newest output, or of what is just being said. */
const LIVE_ROWS = 4;
const FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏";

/** Turns a run's events into lines for people. The same for a live run, `attach` and `logs`. */
export interface RunView {
  /** What to print for an event, for good; empty for most. */
  lines(event: RunEvent): Line[];
  /**
   * What is going on now: words being said, newest output, a line of figures. Each row fits. Empty while a person is
   * asked.
   */
  live(columns: number): Line[];
  /** Of a run whose beginning was left out: its figures up to the last event. */
  takeFigures(run: Pick<RunFacts, "steps" | "usage" | "costUsd">): void;
}

interface ToolView {
  name: string;
  about: string;
  startedMs: number;
  files: Line[];
}

type DataOf<Type extends RunEvent["type"]> = Extract<RunEvent, { type: Type }>["data"];

export function createRunView(options: { columns: () => number | null }): RunView {
  const tools = new Map<string, ToolView>();
  const running = new Set<string>();
  let said = "";
  let output = "";
  let step = 0;
  let costUsd: number | null = 0;
  let tokens = 0;
  let doing = "starting";
  let startedMs = Date.now();
  /** Of a run that was continued, the figures are those of its last turn. */
  let turn: { steps: number; tokens: number; costUsd: number | null } | null = null;
  let waiting = false;
  let frame = 0;

  /** Where there is no terminal, a line stays a line: programs look for words in it. */
  const textColumns = () => {
    const columns = options.columns();
    return columns === null ? Number.POSITIVE_INFINITY : Math.max(20, Math.min(TEXT_COLUMNS_MAX, columns) - 2);
  };
  const paragraph = (text: string): Line[] => (text.trim() === "" ? [] : wrapText(text, textColumns()).map((row) => line`  ${row}`));
  const markdown = createMarkdownView(textColumns);
  /** Streamed words come in pieces; what is whole is printed, the rest is shown below until it is. */
  const speak = (text: string, finish: boolean): Line[] => {
    said += plainText(text);
    const whole = said.split("\n");
    said = finish ? "" : (whole.pop() ?? "");
    return [...whole.flatMap((each) => markdown.add(each)), ...(finish ? markdown.end() : [])].map((row) =>
      row.text === "" ? row : line`  ${row}`,
    );
  };

  const spend = ({ usage, costUsd: cost }: Pick<DataOf<"model.ended">, "usage" | "costUsd">): void => {
    const used = usage.inputTokens + usage.outputTokens;
    tokens += used;
    costUsd = costUsd === null || cost === null ? null : costUsd + cost;
    if (turn === null) return;
    turn.tokens += used;
    turn.costUsd = turn.costUsd === null || cost === null ? null : turn.costUsd + cost;
  };

  const toolEnded = (data: DataOf<"tool.ended">): Line[] => {
    const tool = tools.get(data.call);
    running.delete(data.call);
    tools.delete(data.call);
    output = "";
    doing = "thinking";
    const worked = data.outcome === "ok";
    const outcome = worked || data.outcome === "error" ? "" : ` ${data.outcome}`;
    const about = tool?.about ? ` ${tool.about}` : "";
    const files = tool?.files ?? [];
    const text = worked && files.length > 0 ? [] : fold(data.text, textColumns()).map((row) => dim("    ", row));
    return [
      line`${worked ? good("✓") : bad("✗")} ${bold(tool?.name ?? "tool")}${about} ${dim(showDuration(data.durationMs) + outcome)}`,
      ...files,
      ...text,
    ];
  };

  const ended = (event: Extract<RunEvent, { type: "run.ended" }>): Line[] => {
    const { reason, usage } = event.data;
    const whole = { steps: event.data.steps, tokens: usage.inputTokens + usage.outputTokens, costUsd: event.data.costUsd };
    const { steps, tokens: used, costUsd: spent } = turn ?? whole;
    const cost = spent === null ? "cost unknown" : `$${spent.toFixed(4)}`;
    const total = used.toLocaleString("en");
    const took = showDuration(Math.max(0, Date.parse(event.at) - startedMs));
    const mark = reason === "done" ? good("done") : bad(reason);
    const why = reason === "done" ? [] : plainText(event.data.text).split("\n").flatMap(paragraph);
    waiting = true;
    return [
      ...speak("", true),
      line`${bold(mark)} after ${steps} ${steps === 1 ? "step" : "steps"}${turn === null ? "" : ` (${whole.steps} in all)`} · ${took} · ${total} tokens · ${cost}`,
      ...why,
    ];
  };

  const linesOf = (event: RunEvent): Line[] => {
    switch (event.type) {
      case "run.created":
        startedMs = Date.parse(event.at);
        return [
          line`${bold(event.data.agent.name)} · ${event.data.model} · ${dim(event.data.run)}`,
          ...plainText(event.data.task).split("\n").flatMap(paragraph),
        ];
      case "run.claimed":
      case "run.prioritized":
      case "run.labelled":
      // Said to standard error when it happened.
      case "run.noticed":
        return [];
      case "run.queued": {
        const { startAt } = event.data;
        doing = "waiting in the queue";
        return [dim(startAt === null ? "queued" : `queued; it starts at ${startAt}`)];
      }
      case "run.sandboxed": {
        const { sandbox, runtime, why, restarted } = event.data;
        const fate = restarted ? ", restarted" : { start: "", lost: ", the one before died", resume: ", found again" }[why];
        doing = "thinking";
        return [dim(`sandbox ${sandbox} (${runtime}${fate})`)];
      }
      case "step.started":
        step = event.data.step;
        if (turn !== null) turn.steps += 1;
        return [dim(`step ${step}`)];
      case "model.requested":
        waiting = false;
        doing = event.data.attempt > 1 ? `asking the model again (${event.data.attempt})` : "thinking";
        return [];
      case "model.streamed":
        return event.data.kind === "text" ? speak(event.data.text, false) : [];
      case "model.ended":
        spend(event.data);
        return speak("", true);
      case "model.failed": {
        const { error, retryInMs } = event.data;
        said = "";
        doing = retryInMs === null ? doing : `waiting ${showDuration(retryInMs)} to ask again`;
        const again = retryInMs === null ? "" : dim(`(asked again in ${showDuration(retryInMs)})`);
        return headed(line`${bad("✗")} ${bold("model")} `, error.message, again);
      }
      case "tool.requested":
        tools.set(event.data.call, { name: plainText(event.data.name), about: aboutCall(event.data.arguments), startedMs: 0, files: [] });
        return [];
      case "tool.started": {
        const tool = tools.get(event.data.call);
        if (tool) tool.startedMs = Date.parse(event.at);
        running.add(event.data.call);
        output = "";
        return [];
      }
      case "tool.streamed":
        output = (output + plainText(event.data.text)).slice(-2000);
        return [];
      case "tool.ended":
        return toolEnded(event.data);
      case "file.changed": {
        tools.get(event.data.call)?.files.push(fileLine(event.data));
        return [];
      }
      case "message.received":
        return headed(line`${bold("›")} `, event.data.text, dim(`(${event.data.source}, ${event.data.mode})`));
      case "permission.asked":
        waiting = true;
        return headed(line`${bold("?")} `, event.data.text, dim(event.data.question));
      case "permission.answered": {
        waiting = false;
        const { answer, text, by } = event.data;
        return headed(line`${dim("answer")} `, text ? `${answer}: ${text}` : answer, dim(`by ${by}`));
      }
      case "run.paused":
        waiting = true;
        if (event.data.why === "outage")
          return headed(line`${bad("✗")} ${bold("paused")} `, event.data.text, dim("until it is resumed, or the model is back"));
        return event.data.why === "user" ? [bold("held")] : [];
      case "run.continued":
        waiting = false;
        doing = "thinking";
        return [];
      case "context.compacted":
        return [dim(`conversation shortened: ${event.data.tokensBefore} → ${event.data.tokensAfter} tokens`)];
      case "loop.noticed":
        return headed(line`${bad("!")} `, event.data.text, dim(`(${event.data.action})`));
      case "run.stop_requested":
        waiting = false;
        return [dim(`stop asked for by ${event.data.by}`)];
      case "run.ended":
        return ended(event);
      case "run.reopened":
        startedMs = Date.parse(event.at);
        turn = { steps: 0, tokens: 0, costUsd: 0 };
        waiting = false;
        doing = "starting";
        return [
          line``,
          dim(`continued by ${event.data.by}${event.data.model === undefined ? "" : ` with ${event.data.model}`}`),
          ...(event.data.lostName === undefined
            ? []
            : [dim(`the name ${event.data.lostName} was given to another meanwhile: it goes on without`)]),
        ];
      case "network.denied":
      case "network.failed":
      case "network.changed":
      case "secret.withheld":
      case "secret.revoked":
      case "port.opened":
        return [dim(`network ${networkLine(event)}`)];
      case "gateway.called":
        spend(event.data);
        return [dim(`gateway ${networkLine(event)}`)];
      case "health.changed":
      case "health.restart_started":
      case "health.restart_ended":
      case "health.escalated":
      case "sandbox.reported":
      case "artifact.stored":
        return watchLines(event);
      case "guardian.decided":
      case "guardian.settled":
      case "guardian.judged":
        return guardianLines(event);
      case "todo.changed":
      case "network.closed":
      case "secret.used":
      case "port.closed":
        return [];
      default:
        return unreachable(event);
    }
  };

  /** The oldest running call, or what else there is to say. */
  const activity = (): string => {
    const [first] = running;
    const tool = first === undefined ? undefined : tools.get(first);
    if (!tool) return doing;
    const others = running.size > 1 ? ` and ${running.size - 1} more` : "";
    return `${tool.name} ${showDuration(Math.max(0, Date.now() - tool.startedMs))}${others} ${tool.about}`;
  };
  return {
    lines: linesOf,
    takeFigures({ steps, usage, costUsd: cost }) {
      step = steps;
      tokens = usage.inputTokens + usage.outputTokens;
      costUsd = cost;
    },
    live(columns) {
      if (waiting) return [];
      frame = (frame + 1) % FRAMES.length;
      const width = columns - 1;
      const words = said.trim() === "" ? [] : wrapText(said, textColumns()).map((row) => line`${cutToWidth(`  ${row}`, width)}`);
      const shown = output.trimEnd() === "" ? [] : output.trimEnd().split("\n");
      const rows = words.length > 0 ? words : shown.map((row) => dim(cutToWidth(`    ${row}`, width)));
      const cost = costUsd === null ? "" : ` · $${costUsd.toFixed(4)}`;
      const figures = `step ${step} · ${showDuration(Date.now() - startedMs)} · ${tokens.toLocaleString("en")} tokens${cost}`;
      return [...rows.slice(-LIVE_ROWS), dim(cutToWidth(`${FRAMES[frame]} ${figures} · ${activity()}`, width))];
    },
  };
}
