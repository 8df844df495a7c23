import type { ModelList } from "../../contract/machine/machine-verbs.ts";
import { type ModelOptions, modelOfOnlyKey, providersByName, resolveModel } from "./resolve-model.ts";

/**
 * Lists the models that the keys in this environment allow. With `check`, throws `invalid` for a name that is not a
 * model name and `unauthenticated` for a model whose key is missing.
 */
export async function listModels(options: {
  models: ModelOptions;
  defaultModel: string | undefined;
  check: string | undefined;
}): Promise<ModelList> {
  if (options.check !== undefined) await resolveModel(options.check, options.models);
  const keyed = modelOfOnlyKey(options.models);
  return {
    default: options.defaultModel ?? keyed ?? null,
    defaultFrom: options.defaultModel !== undefined ? "setting" : keyed === undefined ? null : "key",
    providers: Object.entries(providersByName).map(([name, { keys, models }]) => ({
      name,
      keys: [...keys],
      hasKey: keys.some((variable) => options.models.env[variable]),
      models: [...models],
    })),
  };
}
