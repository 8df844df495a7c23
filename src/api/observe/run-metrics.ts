import type { EventFor, NewEventOf } from "../../contract/event/event-family.ts";
import { type Handlers, handle } from "../../contract/event/handlers.ts";
import type { Usage } from "../../contract/model/usage.ts";
import type { NewRunEvent, runEvents } from "../../contract/run/run-event.ts";
import { createCounter, type Family } from "./metrics.ts";

/** The most model calls in progress that are tracked, for all runs together. */
const CALLS_MAX = 10_000;
const providers = new Set(["anthropic", "openai", "google", "compatible", "scripted"]);

/** Counts what the runs that this process drives record, since the process started. */
export function createRunMetrics(): { take(run: string, event: NewRunEvent): void; families(): Family[] } {
  const ended = createCounter("caisson_runs_ended_total", "Runs that ended in this process, by reason.");
  const calls = createCounter("caisson_model_calls_total", "Model calls, by provider and outcome.");
  const tokens = createCounter("caisson_model_tokens_total", "Tokens of model calls, by provider and kind.");
  const cost = createCounter("caisson_model_cost_usd_total", "Cost of model calls, by provider, as far as prices are known.");
  const tools = createCounter("caisson_tool_calls_total", "Tool calls, by outcome.");
  const denials = createCounter("caisson_egress_denied_total", "Denied connections and requests, by reason.");
  const counters = [ended, calls, tokens, cost, tools, denials];
  const providerOf = new Map<string, string>();
  const addUsage = (provider: string, { usage, costUsd }: { usage: Usage; costUsd: number | null }) => {
    tokens.add({ provider, kind: "input" }, usage.inputTokens);
    tokens.add({ provider, kind: "output" }, usage.outputTokens);
    cost.add({ provider }, costUsd ?? 0);
  };
  const takeProvider = (key: string) => {
    const provider = providerOf.get(key) ?? "unknown";
    providerOf.delete(key);
    return provider;
  };
  const handlers: Handlers<NewEventOf<EventFor<typeof runEvents, "metrics">>, string> = {
    "run.ended": ({ data }) => ended.add({ reason: data.reason }),
    "model.requested": ({ data }, run) => {
      if (providerOf.size >= CALLS_MAX) providerOf.delete(providerOf.keys().next().value as string);
      providerOf.set(`${run}/${data.call}`, providerName(data.model));
    },
    "model.ended": ({ data }, run) => {
      const provider = takeProvider(`${run}/${data.call}`);
      calls.add({ provider, outcome: "ok" });
      addUsage(provider, data);
    },
    "model.failed": ({ data }, run) => calls.add({ provider: takeProvider(`${run}/${data.call}`), outcome: "failed" }),
    "gateway.called": ({ data }) => {
      calls.add({ provider: data.wire, outcome: data.error === null ? "ok" : "failed" });
      addUsage(data.wire, data);
    },
    "tool.ended": ({ data }) => tools.add({ outcome: data.outcome }),
    "network.denied": ({ data }) => denials.add({ reason: data.reason }, data.count),
  };
  return {
    take: (run, event) => handle(handlers, event, run),
    families: () => counters.map((counter) => counter.family()),
  };
}

/** Returns the provider part of a model name if we know it. Unknown names could be unlimited in number. */
function providerName(model: string): string {
  const [name = ""] = model.split(/[/:]/);
  return providers.has(name) ? name : "other";
}
