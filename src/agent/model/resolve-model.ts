import type { LanguageModelV4 } from "@ai-sdk/provider";
import { CaissonError } from "../../contract/error.ts";
import { type ModelName, type ModelProvider, modelProviders, parseModelName } from "../../contract/model-name.ts";
import type { PriceTable } from "../../contract/price.ts";
import type { Model } from "./model.ts";
import { CONTEXT_TOKENS_DEFAULT, costOf, findPrice } from "./prices.ts";

export interface ModelOptions {
  /** The environment's variables that may hold keys and base URLs; read by the composition root. */
  env: Readonly<Record<string, string | undefined>>;
  prices?: PriceTable;
  /** For `compatible/…`: any server that speaks OpenAI's chat protocol. */
  baseUrl?: string;
  stallMs?: number;
  record?: string;
  replay?: string;
}

interface Provider {
  /** The first that is set is the key. */
  keys: readonly string[];
  open(id: string, key: string | undefined, baseUrl: string | undefined): Promise<LanguageModelV4>;
  baseUrlVariable: string;
}

const providers: Record<Exclude<ModelProvider, "compatible">, Provider> = {
  anthropic: {
    keys: ["ANTHROPIC_API_KEY"],
    baseUrlVariable: "ANTHROPIC_BASE_URL",
    open: async (id, key, baseUrl) => {
      const { createAnthropic } = await import("@ai-sdk/anthropic");
      return createAnthropic({ ...(key ? { apiKey: key } : {}), ...(baseUrl ? { baseURL: baseUrl } : {}) })(id);
    },
  },
  openai: {
    keys: ["OPENAI_API_KEY"],
    baseUrlVariable: "OPENAI_BASE_URL",
    open: async (id, key, baseUrl) => {
      const { createOpenAI } = await import("@ai-sdk/openai");
      return createOpenAI({ ...(key ? { apiKey: key } : {}), ...(baseUrl ? { baseURL: baseUrl } : {}) })(id);
    },
  },
  google: {
    keys: ["GOOGLE_GENERATIVE_AI_API_KEY", "GEMINI_API_KEY"],
    baseUrlVariable: "GOOGLE_BASE_URL",
    open: async (id, key, baseUrl) => {
      const { createGoogleGenerativeAI } = await import("@ai-sdk/google");
      return createGoogleGenerativeAI({ ...(key ? { apiKey: key } : {}), ...(baseUrl ? { baseURL: baseUrl } : {}) })(id);
    },
  },
};

/** What a provider's key and address may be given in, by its name. */
export const providerVariablesByName: Readonly<Record<string, { keys: readonly string[]; baseUrl: string }>> = Object.fromEntries(
  Object.entries(providers).map(([name, { keys, baseUrlVariable }]) => [name, { keys, baseUrl: baseUrlVariable }]),
);

/** Every variable of the environment that says something about a provider. */
export const providerVariables: readonly string[] = Object.values(providers).flatMap(({ keys, baseUrlVariable }) => [
  ...keys,
  baseUrlVariable,
]);

/**
 * Finds a model by the name a user writes: `anthropic/…`, `openai/…`, `google/…`, `compatible/…` with a base URL, or
 * `scripted:FILE`, of which `scripted:demo` is one of our own. Throws `invalid` for a name of another form,
 * `unauthenticated` naming the variable for a missing key.
 */
export async function resolveModel(name: string, options: ModelOptions): Promise<Model> {
  if (options.record !== undefined && options.replay !== undefined) {
    throw new CaissonError("invalid", "a run is either recorded or replayed, not both");
  }
  if (options.replay !== undefined) {
    const price = findPrice(name, options.prices);
    const { replayingModel } = await import("./recording.ts");
    return replayingModel({
      dir: options.replay,
      name,
      contextTokens: price?.contextTokens ?? CONTEXT_TOKENS_DEFAULT,
      cost: (usage) => costOf(usage, price),
    });
  }
  const parsed = knownModelName(name);
  const model = parsed.kind === "provider" ? await openProvider(parsed, name, options) : await openScripted(parsed);
  if (options.record === undefined) return model;
  const { recordingModel } = await import("./recording.ts");
  return recordingModel(model, options.record);
}

async function openScripted(name: Exclude<ModelName, { kind: "provider" }>): Promise<Model> {
  const { createScriptedModel, loadScriptedModel } = await import("./scripted-model.ts");
  if (name.kind === "script") return loadScriptedModel(name.file);
  const { demoScript } = await import("./demo-script.ts");
  return createScriptedModel(demoScript, { name: "scripted:demo" });
}

/** Whether there can be a model of this name, whoever has a key for it. Throws `invalid`. */
export function checkModelName(name: string): void {
  knownModelName(name);
}

function knownModelName(name: string): ModelName {
  const parsed = parseModelName(name);
  if (parsed !== null) return parsed;
  throw new CaissonError("invalid", `${JSON.stringify(name)} is not a model`, {
    hint: `Write PROVIDER/MODEL with one of ${modelProviders.join(", ")}, or scripted:FILE.`,
  });
}

async function openProvider(
  { provider, id }: Extract<ModelName, { kind: "provider" }>,
  name: string,
  options: ModelOptions,
): Promise<Model> {
  const { createProviderModel } = await import("./provider-model.ts");
  const stall = options.stallMs === undefined ? {} : { stallMs: options.stallMs };
  if (provider === "compatible") {
    const baseUrl = options.env.OPENAI_BASE_URL ?? options.baseUrl;
    if (!baseUrl) {
      throw new CaissonError("invalid", `${name} needs the address of its server`, {
        hint: "Set OPENAI_BASE_URL or models.baseUrl in the config file, for example http://localhost:11434/v1.",
      });
    }
    const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
    const key = options.env.OPENAI_API_KEY;
    const language = createOpenAICompatible({ name: "compatible", baseURL: baseUrl, includeUsage: true, ...(key ? { apiKey: key } : {}) })(
      id,
    );
    return createProviderModel({ name, language, price: findPrice(name, options.prices), secrets: key ? [key] : [], ...stall });
  }
  const found = providers[provider];
  const key = found.keys.map((variable) => options.env[variable]).find((value) => value);
  if (!key) {
    throw new CaissonError("unauthenticated", `${name} needs a key`, {
      hint: `Set ${found.keys.join(" or ")}, or choose another model with --model.`,
    });
  }
  const language = await found.open(id, key, options.env[found.baseUrlVariable]);
  return createProviderModel({ name, language, price: findPrice(name, options.prices), secrets: key ? [key] : [], ...stall });
}
