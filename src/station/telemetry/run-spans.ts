import type { EventFor, NewEventOf } from "../../contract/event/event-family.ts";
import { type Handlers, handle } from "../../contract/event/handlers.ts";
import type { Usage } from "../../contract/model/usage.ts";
import type { NewRunEvent, runEvents } from "../../contract/run/run-event.ts";
import { parseTraceparent, spanIdOf, traceIdOf } from "../../lib/trace-ids.ts";
import { type Attributes, createOpenSpans, type EndedSpan, type OpenSpans } from "./open-spans.ts";

export interface RunSpans {
  /** Processes the next event of the run, and returns the spans that it ends. */
  take(event: NewRunEvent, atMs: number): EndedSpan[];
}

interface Taking {
  run: string;
  spans: OpenSpans;
  /** The trace of the parent run, for a sub-run. */
  parentTraceId: string | undefined;
  atMs: number;
}

type SpanEvent = NewEventOf<EventFor<typeof runEvents, "spans">>;

/**
 * Creates the spans of one run from its events: the run, its steps, and their model and tool calls. Spans contain no
 * text of messages, prompts or answers.
 */
export function createRunSpans(run: string, { parentTraceId }: { parentTraceId?: string } = {}): RunSpans {
  const spans = createOpenSpans(run, traceIdOf(run));
  return {
    take: (event, atMs) => handle(handlers, event, { run, spans, parentTraceId, atMs }) ?? [],
  };
}

/** Returns whether an event affects spans; most events do not. */
export const concernsSpans = ({ type }: { type: string }): boolean => Object.hasOwn(handlers, type);

const handlers: Handlers<SpanEvent, Taking, EndedSpan[]> = {
  "run.created": ({ data: { agent, model, session, parent, traceparent } }, { run, spans, parentTraceId, atMs }) => {
    const caller = parseTraceparent(traceparent);
    spans.trace({ traceId: parentTraceId ?? caller?.traceId ?? traceIdOf(run), sampled: caller?.sampled ?? true });
    const attributes = {
      "gen_ai.operation.name": "invoke_agent",
      "gen_ai.agent.name": agent.name,
      "gen_ai.conversation.id": session,
      ...ofModel(model),
      "caisson.run": run,
    };
    const parentSpanId = parent === null ? (caller?.spanId ?? null) : spanIdOf(parent.run, `tool ${parent.call}`);
    return spans.begin("run", { parentSpanId, name: `invoke_agent ${agent.name}`, kind: "internal", startMs: atMs, attributes });
  },
  // The previous driver is dead, and its model calls are lost.
  "run.claimed": (_, { spans, atMs }) => spans.endAll((key) => key.startsWith("model "), { atMs, error: "lost" }),
  "step.started": ({ data: { step } }, { run, spans, atMs }) => {
    const before = spans.endAll((key) => key.startsWith("step "), { atMs, error: null });
    const attributes = { "caisson.run": run, "caisson.step": step };
    const span = { parentSpanId: spans.rootId, name: `step ${step}`, kind: "internal" as const, startMs: atMs, attributes };
    return [...before, ...spans.begin(`step ${step}`, span)];
  },
  "model.requested": ({ data: { call, model, attempt } }, { run, spans, atMs }) => {
    const attributes = { "gen_ai.operation.name": "chat", ...ofModel(model), "caisson.run": run, "caisson.attempt": attempt };
    const name = `chat ${modelName(model)}`;
    return spans.begin(`model ${call}`, { parentSpanId: spans.current(), name, kind: "client", startMs: atMs, attributes });
  },
  "model.ended": ({ data: { call, usage, stop, costUsd } }, { spans, atMs }) => {
    const more = { ...ofUsage(usage, costUsd), "gen_ai.response.finish_reasons": stop };
    return spans.end(`model ${call}`, { atMs, error: null, more });
  },
  "model.failed": ({ data: { call, error } }, { spans, atMs }) => spans.end(`model ${call}`, { atMs, error: error.code }),
  "tool.requested": ({ data: { call, name } }, { run, spans, atMs }) => {
    const attributes = {
      "gen_ai.operation.name": "execute_tool",
      "gen_ai.tool.name": name,
      "gen_ai.tool.call.id": call,
      "gen_ai.tool.type": "function",
      "caisson.run": run,
    };
    const parentSpanId = spans.current();
    return spans.begin(`tool ${call}`, { parentSpanId, name: `execute_tool ${name}`, kind: "internal", startMs: atMs, attributes });
  },
  // The sandbox span starts here, because the call may have waited for permission before.
  "tool.started": ({ data: { call } }, { run, spans, atMs }) => {
    const tool = spans.idOf(`tool ${call}`);
    if (tool === null) return [];
    const attributes = { ...spans.place(), "caisson.run": run };
    return spans.begin(`inside ${call}`, { parentSpanId: tool, name: "sandbox", kind: "internal", startMs: atMs, attributes });
  },
  "run.sandboxed": ({ data: { sandbox, runtime } }, { spans }) => {
    spans.enter({ "caisson.sandbox": sandbox, "caisson.runtime": runtime });
    return [];
  },
  "tool.ended": ({ data: { call, outcome, details } }, { spans, atMs }) => {
    const exitCode = (details as { exitCode?: unknown } | null | undefined)?.exitCode;
    const more = { "caisson.tool.outcome": outcome, ...(typeof exitCode === "number" && { "process.exit.code": exitCode }) };
    const error = outcome === "ok" ? null : outcome;
    return [...spans.end(`inside ${call}`, { atMs, error }), ...spans.end(`tool ${call}`, { atMs, error, more })];
  },
  "run.ended": ({ data: { reason, steps, usage, costUsd } }, { spans, atMs }) => {
    const calls = spans.endAll((key) => !/^(step|run)/.test(key), { atMs, error: "lost" });
    const lastStep = spans.endAll((key) => key !== "run", { atMs, error: null });
    const more = { ...ofUsage(usage, costUsd), "caisson.finish": reason, "caisson.steps": steps };
    return [...calls, ...lastStep, ...spans.end("run", { atMs, error: reason === "done" ? null : reason, more })];
  },
  // The earlier spans belong to the run that it was forked from.
  "run.forked": ({ data: { agent, model, session, from } }, { run, spans, atMs }) => {
    spans.reset();
    spans.trace({ traceId: traceIdOf(run), sampled: true });
    const attributes = {
      "gen_ai.operation.name": "invoke_agent",
      "gen_ai.agent.name": agent,
      "gen_ai.conversation.id": session,
      ...ofModel(model),
      "caisson.run": run,
      "caisson.forked_from": `${from.run}@${from.step}`,
    };
    return spans.begin("run", { parentSpanId: null, name: `invoke_agent ${agent}`, kind: "internal", startMs: atMs, attributes });
  },
  "run.rewound": (_, { spans, atMs }) => spans.endAll((key) => key !== "run", { atMs, error: "rewound" }),
  // Another turn gets its own span in the same trace, below the first.
  "run.reopened": (_, { run, spans, atMs }) => {
    const attributes = { "gen_ai.operation.name": "invoke_agent", "caisson.run": run };
    return spans.begin("run", { parentSpanId: spans.rootId, name: "invoke_agent again", kind: "internal", startMs: atMs, attributes });
  },
};

function ofModel(model: string): Attributes {
  return { "gen_ai.provider.name": model.split(/[/:]/)[0] ?? "unknown", "gen_ai.request.model": modelName(model) };
}

function modelName(model: string): string {
  return model.slice(model.search(/[/:]/) + 1).slice(0, 200);
}

function ofUsage({ inputTokens, outputTokens }: Usage, costUsd: number | null): Attributes {
  const tokens = { "gen_ai.usage.input_tokens": inputTokens, "gen_ai.usage.output_tokens": outputTokens };
  return costUsd === null ? tokens : { ...tokens, "caisson.cost_usd": costUsd };
}
