import type { NewRunEvent } from "../../contract/run-event.ts";
import type { Usage } from "../../contract/usage.ts";
import { createCounter, type Family } from "./metrics.ts";

/** Model calls that were asked for and have not ended, of all runs. */
const CALLS_MAX = 10_000;
const providers = new Set(["anthropic", "openai", "google", "compatible", "scripted"]);

/** What the runs that this process drives do, as they put it down. Counted from the process's start on. */
export function createRunMetrics(): { take(run: string, event: NewRunEvent): void; families(): Family[] } {
  const ended = createCounter("caisson_runs_ended_total", "Runs that ended here, by reason.");
  const calls = createCounter("caisson_model_calls_total", "Model calls, by provider and outcome.");
  const tokens = createCounter("caisson_model_tokens_total", "Tokens of model calls, by provider and kind.");
  const cost = createCounter("caisson_model_cost_usd_total", "What model calls cost, by provider, as far as prices are known.");
  const tools = createCounter("caisson_tool_calls_total", "Tool calls, by outcome.");
  const denials = createCounter("caisson_egress_denied_total", "Connections and requests that were refused, by reason.");
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
  return {
    take(run, event) {
      switch (event.type) {
        case "run.ended":
          return ended.add({ reason: event.data.reason });
        case "model.requested":
          if (providerOf.size >= CALLS_MAX) providerOf.delete(providerOf.keys().next().value as string);
          providerOf.set(`${run}/${event.data.call}`, providerName(event.data.model));
          return;
        case "model.ended": {
          const provider = takeProvider(`${run}/${event.data.call}`);
          calls.add({ provider, outcome: "ok" });
          return addUsage(provider, event.data);
        }
        case "model.failed":
          return calls.add({ provider: takeProvider(`${run}/${event.data.call}`), outcome: "failed" });
        case "gateway.called":
          calls.add({ provider: event.data.wire, outcome: event.data.error === null ? "ok" : "failed" });
          return addUsage(event.data.wire, event.data);
        case "tool.ended":
          return tools.add({ outcome: event.data.outcome });
        case "network.denied":
          return denials.add({ reason: event.data.reason }, event.data.count);
        // Few of a run's events are counted: one that is added is none of them unless somebody wants its figure.
        default:
          return;
      }
    },
    families: () => counters.map((counter) => counter.family()),
  };
}

/** The part before the slash, where it is one that we know: others' names are not ours to bound. */
function providerName(model: string): string {
  const [name = ""] = model.split(/[/:]/);
  return providers.has(name) ? name : "other";
}
