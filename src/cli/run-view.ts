import type { RunEvent } from "../contract/run-event.ts";
import { showDuration } from "../lib/quantity.ts";
import type { Style } from "./style.ts";

/** Lines of a tool's output that are shown; the rest is in the log. */
const FOLDED_LINES = 6;
const LINE_CHARACTERS_MAX = 160;

/** Turns a run's events into lines for people. The same for a live run, `attach` and `logs`. */
export interface RunView {
  /** What to print for an event; empty for most. */
  lines(event: RunEvent): string[];
  /** What the run is doing now, on one line. */
  status(): string;
}

export function createRunView(options: { style: Style; startedMs: () => number }): RunView {
  const { style } = options;
  const tools = new Map<string, { name: string; about: string }>();
  let said = "";
  let step = 0;
  let costUsd: number | null = 0;
  let tokens = 0;
  let doing = "starting";

  /** Streamed words come in pieces; only whole lines are printed. */
  const speak = (text: string, finish: boolean): string[] => {
    said += text;
    const lines = said.split("\n");
    said = finish ? "" : (lines.pop() ?? "");
    return lines.filter((line) => line.trim() !== "" || !finish).map((line) => `  ${line}`);
  };

  const show = (event: RunEvent): string[] => {
    switch (event.type) {
      case "run.created":
        return [
          `${style.bold(event.data.agent.name)} · ${event.data.model} · ${style.dim(event.data.run)}`,
          `${style.dim("task")} ${event.data.task}`,
        ];
      case "run.sandboxed":
        doing = "thinking";
        return [
          style.dim(`sandbox ${event.data.sandbox} (${event.data.runtime}${event.data.why === "start" ? "" : `, ${event.data.why}`})`),
        ];
      case "step.started":
        step = event.data.step;
        return [];
      case "model.requested":
        doing = event.data.attempt > 1 ? `asking the model again (${event.data.attempt})` : "thinking";
        return [];
      case "model.streamed":
        return event.data.kind === "text" ? speak(event.data.text, false) : [];
      case "model.ended": {
        tokens += event.data.usage.inputTokens + event.data.usage.outputTokens;
        costUsd = costUsd === null || event.data.costUsd === null ? null : costUsd + event.data.costUsd;
        return speak("", true);
      }
      case "model.failed":
        return [
          style.bad(`  the model failed: ${event.data.error.message}`),
          ...(event.data.retryInMs === null ? [] : [style.dim(`  again in ${showDuration(event.data.retryInMs)}`)]),
        ];
      case "tool.requested":
        tools.set(event.data.call, { name: event.data.name, about: aboutCall(event.data.arguments) });
        return [];
      case "tool.started": {
        const tool = tools.get(event.data.call);
        doing = `${tool?.name ?? "tool"} ${tool?.about ?? ""}`;
        return [];
      }
      case "tool.ended": {
        const tool = tools.get(event.data.call);
        const good = event.data.outcome === "ok";
        const mark = good ? style.good("✓") : style.bad("✗");
        const outcome = good || event.data.outcome === "error" ? "" : ` ${event.data.outcome}`;
        doing = "thinking";
        return [
          `${mark} ${style.bold(tool?.name ?? "tool")} ${tool?.about ?? ""} ${style.dim(showDuration(event.data.durationMs) + outcome)}`,
          ...fold(event.data.text).map((line) => style.dim(`    ${line}`)),
        ];
      }
      case "file.changed": {
        const counts =
          event.data.linesAdded === null
            ? ""
            : ` ${style.good(`+${event.data.linesAdded}`)} ${style.bad(`−${event.data.linesRemoved ?? 0}`)}`;
        return [`  ${event.data.kind} ${event.data.path}${counts}`];
      }
      case "message.received":
        return [`${style.bold("message")} ${style.dim(`(${event.data.source}, ${event.data.mode})`)} ${event.data.text}`];
      case "permission.asked":
        doing = "waiting for an answer";
        return [`${style.bold("?")} ${event.data.text} ${style.dim(event.data.question)}`];
      case "permission.answered":
        return [
          `${style.dim("answer")} ${event.data.answer}${event.data.text ? `: ${event.data.text}` : ""} ${style.dim(`by ${event.data.by}`)}`,
        ];
      case "run.paused":
        doing = `paused: ${event.data.text}`;
        return event.data.why === "user" ? [style.bold("paused")] : [];
      case "run.continued":
        doing = "thinking";
        return [];
      case "context.compacted":
        return [style.dim(`  conversation shortened: ${event.data.tokensBefore} → ${event.data.tokensAfter} tokens`)];
      case "loop.noticed":
        return [style.bad(`  ${event.data.text} (${event.data.action})`)];
      case "run.stop_requested":
        return [style.dim(`stop asked for by ${event.data.by}`)];
      case "run.ended": {
        const cost = event.data.costUsd === null ? "cost unknown" : `$${event.data.costUsd.toFixed(4)}`;
        const total = event.data.usage.inputTokens + event.data.usage.outputTokens;
        const mark = event.data.reason === "done" ? style.good("done") : style.bad(event.data.reason);
        const why = event.data.reason === "done" ? [] : [`  ${event.data.text}`];
        return [...speak("", true), `${style.bold(mark)} after ${event.data.steps} steps · ${total} tokens · ${cost}`, ...why];
      }
      default:
        return [];
    }
  };
  return {
    lines: show,
    status() {
      const cost = costUsd === null ? "" : ` · $${costUsd.toFixed(4)}`;
      return `step ${step} · ${showDuration(Date.now() - options.startedMs())} · ${tokens} tokens${cost} · ${cut(doing, 60)}`;
    },
  };
}

/** The one argument that says most about a call. */
function aboutCall(args: unknown): string {
  if (typeof args !== "object" || args === null) return "";
  const values = args as Record<string, unknown>;
  const first = ["command", "path", "pattern", "agent", "id", "args"].map((key) => values[key]).find((value) => value !== undefined);
  const text = Array.isArray(first) ? first.join(" ") : typeof first === "string" ? first : "";
  return cut(text.split("\n")[0] ?? "", 100);
}

function fold(text: string): string[] {
  const lines = text.trimEnd().split("\n");
  const shown = lines.length <= FOLDED_LINES ? lines : [`… ${lines.length - FOLDED_LINES + 1} lines`, ...lines.slice(-FOLDED_LINES + 1)];
  return shown.filter((line) => line.trim() !== "").map((line) => cut(line, LINE_CHARACTERS_MAX));
}

/** Control characters of a sandbox's output must not reach a person's terminal. */
function cut(text: string, length: number): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to leave out.
  const clean = text.replace(/\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]/g, "");
  return clean.length > length ? `${clean.slice(0, length - 1)}…` : clean;
}
