import type { EventFor } from "../../contract/event/event-family.ts";
import type { Handlers } from "../../contract/event/handlers.ts";
import type { NetworkEvent } from "../../contract/network/network-event.ts";
import type { runEvents } from "../../contract/run/run-event.ts";
import { showDuration } from "../../lib/quantity.ts";
import { networkLine } from "../network/network-view.ts";
import { guardianLines } from "../server/guardian-view.ts";
import { watchLines } from "../server/health-view.ts";
import { bad, bold, dim, good, type Line, line } from "../terminal/line.ts";
import { plainText, wrapText } from "../terminal/plain-text.ts";
import { aboutCall, fileLine, fold, linesWithMark } from "./event-lines.ts";

type TerminalEvent = EventFor<typeof runEvents, "terminal">;
type EventOf<Type extends TerminalEvent["type"]> = Extract<TerminalEvent, { type: Type }>;

/** The state of a run's view after the events so far. */
export interface RunViewState {
  tools: Map<string, { name: string; about: string; startedMs: number; files: Line[] }>;
  running: Set<string>;
  said: string;
  output: string;
  step: number;
  costUsd: number | null;
  tokens: number;
  doing: string;
  startedMs: number;
  /** The figures of the current turn, if the run was continued. */
  turn: { steps: number; tokens: number; costUsd: number | null } | null;
  waiting: boolean;
  textColumns(): number;
  /** Adds a piece of streamed text. Returns the completed lines and keeps an incomplete one in `said`. */
  speak(text: string, options: { finish: boolean }): Line[];
}

/** Returns the lines to print for each event, after updating the view. */
export const runEventLines: Handlers<TerminalEvent, RunViewState, Line[]> = {
  "run.created": ({ at, data: { agent, model, run, task } }, view) => {
    view.startedMs = Date.parse(at);
    return [line`${bold(agent.name)} · ${model} · ${dim(run)}`, ...paragraphs(task, view)];
  },
  "run.queued": ({ data: { startAt } }, view) => {
    view.doing = "waiting in the queue";
    return [dim(startAt === null ? "queued" : `queued; starts at ${startAt}`)];
  },
  "run.sandboxed": ({ data: { sandbox, runtime, why, restarted } }, view) => {
    const fate = restarted ? ", restarted" : { start: "", lost: ", replacing one that died", resume: ", reused" }[why];
    view.doing = "thinking";
    return [dim(`sandbox ${sandbox} (${runtime}${fate})`)];
  },
  "run.paused": ({ data: { why, text } }, view) => {
    view.waiting = true;
    if (why === "outage") return linesWithMark(line`${bad("✗")} ${bold("paused")} `, text, dim("until you resume it or the model is back"));
    return why === "user" ? [bold("held")] : [];
  },
  "run.continued": (_, view) => {
    view.waiting = false;
    view.doing = "thinking";
    return [];
  },
  "run.stop_requested": ({ data }, view) => {
    view.waiting = false;
    return [dim(`stop requested by ${data.by}`)];
  },
  "run.ended": runEnded,
  "run.reopened": ({ at, data: { by, model, lostName } }, view) => {
    view.startedMs = Date.parse(at);
    view.turn = { steps: 0, tokens: 0, costUsd: 0 };
    view.waiting = false;
    view.doing = "starting";
    return [
      line``,
      dim(`continued by ${by}${model === undefined ? "" : ` with ${model}`}`),
      ...(lostName === undefined ? [] : [dim(`another run has taken the name ${lostName}, so this one continues without a name`)]),
    ];
  },
  "run.forked": ({ at, data: { run, agent, model, from } }, view) => {
    Object.assign(view, { startedMs: Date.parse(at), tokens: 0, costUsd: 0, turn: { steps: 0, tokens: 0, costUsd: 0 } });
    view.waiting = true;
    return [line`${bold(agent)} · ${model} · ${dim(run)}`, dim(`a fork of ${from.run} after step ${from.step}`)];
  },
  "run.rewind_started": ({ data: { toStep } }, view) => {
    view.waiting = true;
    return [dim(`rewinding to step ${toStep}`)];
  },
  "run.rewind_failed": ({ data: { text } }) =>
    linesWithMark(line`${bad("✗")} ${bold("not rewound")} `, text, dim("the run stays as it is")),
  "run.rewound": ({ data: { by, toStep, tail } }, view) => {
    view.step = toStep;
    view.waiting = true;
    view.tools.clear();
    view.running.clear();
    return [...view.speak("", { finish: true }), dim(`rewound to step ${toStep} by ${by}; ${tail} has the rest`)];
  },
  "step.started": ({ data: { step } }, view) => {
    view.step = step;
    if (view.turn !== null) view.turn.steps += 1;
    return [dim(`step ${step}`)];
  },
  "model.requested": ({ data: { attempt } }, view) => {
    view.waiting = false;
    view.doing = attempt > 1 ? `calling the model again (${attempt})` : "thinking";
    return [];
  },
  "model.streamed": ({ data: { kind, text } }, view) => (kind === "text" ? view.speak(text, { finish: false }) : []),
  "model.ended": ({ data }, view) => {
    spend(data, view);
    return view.speak("", { finish: true });
  },
  "model.failed": ({ data: { error, retryInMs } }, view) => {
    view.said = "";
    if (retryInMs !== null) view.doing = `waiting ${showDuration(retryInMs)} to try again`;
    const again = retryInMs === null ? "" : dim(`(retrying in ${showDuration(retryInMs)})`);
    return linesWithMark(line`${bad("✗")} ${bold("model")} `, error.message, again);
  },
  "tool.requested": ({ data: { call, name, arguments: args } }, { tools }) => {
    tools.set(call, { name: plainText(name), about: aboutCall(args), startedMs: 0, files: [] });
    return [];
  },
  "tool.started": ({ at, data: { call } }, view) => {
    const tool = view.tools.get(call);
    if (tool) tool.startedMs = Date.parse(at);
    view.running.add(call);
    view.output = "";
    return [];
  },
  "tool.streamed": ({ data }, view) => {
    view.output = (view.output + plainText(data.text)).slice(-2000);
    return [];
  },
  "tool.ended": toolEnded,
  "file.changed": ({ data }, { tools }) => {
    tools.get(data.call)?.files.push(fileLine(data));
    return [];
  },
  "message.received": ({ data: { text, source, mode } }) => linesWithMark(line`${bold("›")} `, text, dim(`(${source}, ${mode})`)),
  "permission.asked": ({ data }, view) => {
    view.waiting = true;
    return linesWithMark(line`${bold("?")} `, data.text, dim(data.question));
  },
  "permission.answered": ({ data: { answer, text, by } }, view) => {
    view.waiting = false;
    return linesWithMark(line`${dim("answer")} `, text ? `${answer}: ${text}` : answer, dim(`by ${by}`));
  },
  "context.compacted": ({ data }) => [dim(`conversation shortened: ${data.tokensBefore} → ${data.tokensAfter} tokens`)],
  "loop.noticed": ({ data }) => linesWithMark(line`${bad("!")} `, data.text, dim(`(${data.action})`)),
  "git.committed": ({ data: { sha, subject, branch } }) => [
    line`${good("●")} commit ${sha.slice(0, 12)} ${dim(branch === null ? "(no branch)" : `on ${branch}`)}: ${subject}`,
  ],
  "run.drive_failed": ({ data: { code, text } }) => linesWithMark(line`${bad("✗")} ${bold("driver failed")} `, text, dim(code)),
  "mcp.connected": ({ data: { server, tools, durationMs } }) => [
    dim(`MCP server ${server}: ${tools.length} ${tools.length === 1 ? "tool" : "tools"}, ready after ${showDuration(durationMs)}`),
  ],
  "network.denied": networkLines,
  "network.failed": networkLines,
  "network.changed": networkLines,
  "secret.withheld": networkLines,
  "secret.revoked": networkLines,
  "port.opened": networkLines,
  "gateway.called": (event, view) => {
    spend(event.data, view);
    return [dim(`gateway ${networkLine(event)}`)];
  },
  "health.changed": watchLines,
  "health.restart_started": watchLines,
  "health.restart_ended": watchLines,
  "health.escalated": watchLines,
  "sandbox.reported": watchLines,
  "artifact.stored": watchLines,
  "guardian.decided": guardianLines,
  "guardian.settled": guardianLines,
  "guardian.judged": guardianLines,
};

function paragraphs(text: string, { textColumns }: RunViewState): Line[] {
  return plainText(text)
    .split("\n")
    .flatMap((each) => (each.trim() === "" ? [] : wrapText(each, textColumns()).map((row) => line`  ${row}`)));
}

function networkLines(event: NetworkEvent): Line[] {
  return [dim(`network ${networkLine(event)}`)];
}

function spend({ usage, costUsd }: Pick<EventOf<"model.ended">["data"], "usage" | "costUsd">, view: RunViewState): void {
  const used = usage.inputTokens + usage.outputTokens;
  for (const figures of [view, view.turn]) {
    if (figures === null) continue;
    figures.tokens += used;
    figures.costUsd = figures.costUsd === null || costUsd === null ? null : figures.costUsd + costUsd;
  }
}

function toolEnded({ data }: EventOf<"tool.ended">, view: RunViewState): Line[] {
  const tool = view.tools.get(data.call);
  view.running.delete(data.call);
  view.tools.delete(data.call);
  view.output = "";
  view.doing = "thinking";
  const worked = data.outcome === "ok";
  const outcome = worked || data.outcome === "error" ? "" : ` ${data.outcome}`;
  const about = tool?.about ? ` ${tool.about}` : "";
  const files = tool?.files ?? [];
  const text = worked && files.length > 0 ? [] : fold(data.text, view.textColumns()).map((row) => dim("    ", row));
  return [
    line`${worked ? good("✓") : bad("✗")} ${bold(tool?.name ?? "tool")}${about} ${dim(showDuration(data.durationMs) + outcome)}`,
    ...files,
    ...text,
  ];
}

function runEnded({ at, data }: EventOf<"run.ended">, view: RunViewState): Line[] {
  const { reason, usage } = data;
  const whole = { steps: data.steps, tokens: usage.inputTokens + usage.outputTokens, costUsd: data.costUsd };
  const { steps, tokens, costUsd } = view.turn ?? whole;
  const cost = costUsd === null ? "cost unknown" : `$${costUsd.toFixed(4)}`;
  const took = showDuration(Math.max(0, Date.parse(at) - view.startedMs));
  const mark = reason === "done" ? good("done") : bad(reason);
  const counted = `${steps} ${steps === 1 ? "step" : "steps"}${view.turn === null ? "" : ` (${whole.steps} in all)`}`;
  view.waiting = true;
  return [
    ...view.speak("", { finish: true }),
    line`${bold(mark)} after ${counted} · ${took} · ${tokens.toLocaleString("en")} tokens · ${cost}`,
    ...(reason === "done" ? [] : paragraphs(data.text, view)),
  ];
}
