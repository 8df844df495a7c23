import { CaissonError } from "../../contract/error/error.ts";
import type { ModelReport } from "../../contract/machine/machine-verbs.ts";
import { defined } from "../../lib/defined.ts";
import type { Model } from "./model.ts";
import { type ModelOptions, modelOfOnlyKey, providersByName, resolveModel } from "./resolve-model.ts";

const ANSWER_TIMEOUT_MS = 30_000;
/** The smallest limit that all providers accept. */
const ANSWER_TOKENS_MAX = 16;

/**
 * Reports which providers have a key, and names the variable but never its value. Also asks the model in `ask` for a
 * word and reports whether it answers. A model that cannot be used is part of the report, not an error.
 */
export async function examineModels(options: {
  models: ModelOptions;
  defaultModel: string | undefined;
  ask: string | undefined;
  timeoutMs?: number;
}): Promise<ModelReport> {
  const { env } = options.models;
  return {
    providers: Object.entries(providersByName).map(([name, { keys, baseUrl }]) => ({
      name,
      keys: [...keys],
      set: [...keys, baseUrl].filter((variable) => (env[variable] ?? "") !== ""),
    })),
    default: options.defaultModel ?? modelOfOnlyKey(options.models) ?? null,
    asked: options.ask === undefined ? null : await askModel(options.ask, options),
  };
}

async function askModel(name: string, options: { models: ModelOptions; timeoutMs?: number }): Promise<NonNullable<ModelReport["asked"]>> {
  const started = performance.now();
  const timeoutMs = options.timeoutMs ?? ANSWER_TIMEOUT_MS;
  const signal = AbortSignal.timeout(timeoutMs);
  const result = (answers: boolean, problem?: string, fix?: string) => ({
    model: name,
    answers,
    durationMs: performance.now() - started,
    ...defined({ problem, fix }),
  });
  try {
    const spoke = await firstChunk(await resolveModel(name, options.models), signal);
    return spoke ? result(true) : result(false, "the answer was empty");
  } catch (error) {
    if (signal.aborted) return result(false, `no answer within ${timeoutMs / 1000} s`, "Check the network and the server's address.");
    if (error instanceof CaissonError) return result(false, error.message, error.hint);
    throw error;
  }
}

async function firstChunk(model: Model, signal: AbortSignal): Promise<boolean> {
  const from = { agent: "doctor", position: 1, purpose: "step" as const, estimatedTokens: ANSWER_TOKENS_MAX };
  const messages = [{ role: "user" as const, text: "Answer with the word: ready" }];
  for await (const _chunk of model.stream({ from, messages, tools: [], outputTokensMax: ANSWER_TOKENS_MAX }, { signal })) return true;
  return false;
}
