import { createHash } from "node:crypto";
import type { NewRunEvent } from "../../contract/run-event.ts";

/** A span that has ended, as plain data. Ids are in hexadecimal, times in milliseconds since 1970. */
export interface EndedSpan {
  traceId: string;
  spanId: string;
  parentSpanId: string | null;
  name: string;
  kind: "internal" | "client" | "server";
  startMs: number;
  endMs: number;
  /** What went wrong, in a word; null when nothing did. */
  error: string | null;
  attributes: Record<string, string | number>;
}

interface OpenSpan {
  spanId: string;
  parentSpanId: string | null;
  name: string;
  kind: "internal" | "client";
  startMs: number;
  attributes: Record<string, string | number>;
}

export interface RunSpans {
  /** Takes the next event of the run; gives the spans that it ends. */
  take(event: NewRunEvent, atMs: number): EndedSpan[];
}

/** Calls that are open at once in one run; more would be a mistake of ours. */
const OPEN_MAX = 1000;

/**
 * The spans of one run, from its events: the run, its steps, and in these the calls of models and tools. Ids are
 * computed from the run's, so that whichever process goes on with it says the same; and of what was said, asked or
 * answered nothing is in them.
 */
export function createRunSpans(run: string, { parentTraceId }: { parentTraceId?: string } = {}): RunSpans {
  const open = new Map<string, OpenSpan>();
  const counts = new Map<string, number>();
  let traceId = traceIdOf(run);
  let sampled = true;
  let providerOf = "unknown";
  const rootId = spanIdOf(run, "run");
  /** The first of its name has the id that others compute for it, too. */
  const nextId = (key: string) => {
    const count = counts.get(key) ?? 0;
    counts.set(key, count + 1);
    return spanIdOf(run, count === 0 ? key : `${key} ${count}`);
  };
  const stepKey = (step: number) => `step ${step}`;
  const begin = (key: string, span: Omit<OpenSpan, "spanId">): EndedSpan[] => {
    const again = end(key, { atMs: span.startMs, error: "lost" });
    if (open.size < OPEN_MAX) open.set(key, { ...span, spanId: nextId(key) });
    return again;
  };
  const end = (
    key: string,
    { atMs, error, more = {} }: { atMs: number; error: string | null; more?: Record<string, string | number> },
  ): EndedSpan[] => {
    const found = open.get(key);
    if (found === undefined) return [];
    open.delete(key);
    if (!sampled) return [];
    const { attributes, ...rest } = found;
    const failed: Record<string, string> = error === null ? {} : { "error.type": error };
    return [{ ...rest, traceId, endMs: Math.max(atMs, found.startMs), error, attributes: { ...attributes, ...more, ...failed } }];
  };
  const endWhere = (isMeant: (key: string) => boolean, atMs: number, error: string | null): EndedSpan[] =>
    [...open.keys()].filter(isMeant).flatMap((key) => end(key, { atMs, error }));
  const currentStep = () => [...open].findLast(([key]) => key.startsWith("step "))?.[1].spanId ?? rootId;
  return {
    take(event, atMs) {
      switch (event.type) {
        case "run.created": {
          const { agent, model, session, parent, traceparent } = event.data;
          const caller = parseTraceparent(traceparent);
          sampled = caller?.sampled ?? true;
          traceId = parentTraceId ?? caller?.traceId ?? traceId;
          const parentSpanId = parent === null ? (caller?.spanId ?? null) : spanIdOf(parent.run, `tool ${parent.call}`);
          providerOf = providerName(model);
          const attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": agent.name,
            "gen_ai.conversation.id": session,
            "gen_ai.provider.name": providerOf,
            "gen_ai.request.model": modelName(model),
            "caisson.run": run,
          };
          return begin("run", { parentSpanId, name: `invoke_agent ${agent.name}`, kind: "internal", startMs: atMs, attributes });
        }
        case "run.claimed":
          // Whoever had it before is gone, and so are its calls of models.
          return endWhere((key) => key.startsWith("model "), atMs, "lost");
        case "step.started": {
          const before = endWhere((key) => key.startsWith("step "), atMs, null);
          const { step } = event.data;
          return [
            ...before,
            ...begin(stepKey(step), {
              parentSpanId: rootId,
              name: `step ${step}`,
              kind: "internal",
              startMs: atMs,
              attributes: { "caisson.run": run, "caisson.step": step },
            }),
          ];
        }
        case "model.requested": {
          const { call, model, attempt } = event.data;
          const attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": providerName(model),
            "gen_ai.request.model": modelName(model),
            "caisson.run": run,
            "caisson.attempt": attempt,
          };
          return begin(`model ${call}`, {
            parentSpanId: currentStep(),
            name: `chat ${modelName(model)}`,
            kind: "client",
            startMs: atMs,
            attributes,
          });
        }
        case "model.ended": {
          const { call, usage, stop, costUsd } = event.data;
          const more = {
            "gen_ai.usage.input_tokens": usage.inputTokens,
            "gen_ai.usage.output_tokens": usage.outputTokens,
            "gen_ai.response.finish_reasons": stop,
            ...(costUsd !== null && { "caisson.cost_usd": costUsd }),
          };
          return end(`model ${call}`, { atMs, error: null, more });
        }
        case "model.failed":
          return end(`model ${event.data.call}`, { atMs, error: event.data.error.code });
        case "tool.requested": {
          const { call, name } = event.data;
          const attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.call.id": call,
            "gen_ai.tool.type": "function",
            "caisson.run": run,
          };
          return begin(`tool ${call}`, {
            parentSpanId: currentStep(),
            name: `execute_tool ${name}`,
            kind: "internal",
            startMs: atMs,
            attributes,
          });
        }
        case "tool.ended": {
          const { call, outcome, details } = event.data;
          const exitCode = (details as { exitCode?: unknown } | null | undefined)?.exitCode;
          const more = { "caisson.tool.outcome": outcome, ...(typeof exitCode === "number" && { "process.exit.code": exitCode }) };
          return end(`tool ${call}`, { atMs, error: outcome === "ok" ? null : outcome, more });
        }
        case "run.ended": {
          const { reason, steps, usage, costUsd } = event.data;
          const inner = [...endWhere((key) => !/^(step|run)/.test(key), atMs, "lost"), ...endWhere((key) => key !== "run", atMs, null)];
          const more = {
            "gen_ai.usage.input_tokens": usage.inputTokens,
            "gen_ai.usage.output_tokens": usage.outputTokens,
            "caisson.finish": reason,
            "caisson.steps": steps,
            ...(costUsd !== null && { "caisson.cost_usd": costUsd }),
          };
          return [...inner, ...end("run", { atMs, error: reason === "done" ? null : reason, more })];
        }
        case "run.reopened":
          // Another turn is another span of the same trace, below the first.
          return begin("run", {
            parentSpanId: rootId,
            name: "invoke_agent again",
            kind: "internal",
            startMs: atMs,
            attributes: { "gen_ai.operation.name": "invoke_agent", "caisson.run": run, "gen_ai.provider.name": providerOf },
          });
        default:
          return [];
      }
    },
  };
}

/** W3C's header; null for anything else. */
export function parseTraceparent(text: string | null | undefined): { traceId: string; spanId: string; sampled: boolean } | null {
  const [, traceId, spanId, flags] = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(text ?? "") ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return null;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

/** The trace of a run that nobody's is above. */
export const traceIdOf = (run: string) => hashed(run, 32);
const hashed = (text: string, length: number) => createHash("sha256").update(text).digest("hex").slice(0, length);
const spanIdOf = (run: string, key: string) => hashed(`${run} ${key}`, 16);
const providerName = (model: string) => model.split(/[/:]/)[0] ?? "unknown";
const modelName = (model: string) => model.slice(model.search(/[/:]/) + 1).slice(0, 200);
