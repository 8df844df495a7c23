import { dirname } from "node:path";
import { absoluteSecrets } from "../contract/absolute-secrets.ts";
import { Config, leavesOf } from "../contract/config.ts";
import { modelVariable } from "../contract/config-sources.ts";
import { CaissonError } from "../contract/error.ts";
import { checkValue, tellProblems } from "../contract/plain-problems.ts";
import type { FoundConfig, LoadedConfig } from "./load-config.ts";

/** What was found, the stronger over the weaker, and the defaults below. Throws `invalid`, naming what is wrong. */
export function checkConfig({ file, variables, model, configDir }: FoundConfig): LoadedConfig {
  const raw = { ...file?.content };
  const sources: Record<string, string> = file === null ? {} : Object.fromEntries(leavesOf(raw).map((name) => [name, file.path]));
  for (const { name, setting, value } of variables) {
    raw[setting] = value;
    sources[setting] = name;
  }
  if (model !== null) {
    raw.models = { ...(raw.models as object | undefined), default: model };
    sources["models.default"] = modelVariable;
  }
  const parsed = checkValue(Config, raw);
  if (parsed.success) {
    const secrets = absoluteSecrets(parsed.data.secrets, file === null ? configDir : dirname(file.path));
    return { config: { ...parsed.data, secrets }, file: file?.path ?? null, sources };
  }
  throw new CaissonError("invalid", `the configuration is not valid: ${tellProblems(parsed.problems)}`, {
    hint: file === null ? "Look at the CAISSON_… variables." : `Look at ${file.path} and the CAISSON_… variables.`,
  });
}
