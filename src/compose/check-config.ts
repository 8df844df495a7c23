import { dirname } from "node:path";
import { Config, leavesOf } from "../contract/config/config.ts";
import { modelVariable } from "../contract/config/config-sources.ts";
import { CaissonError } from "../contract/error/error.ts";
import { checkValue, tellProblems } from "../contract/error/plain-problems.ts";
import { absoluteSecrets } from "../contract/secret/absolute-secrets.ts";
import type { FoundConfig, LoadedConfig } from "./load-config.ts";

/** Merges the sources by precedence over the defaults. Throws `invalid`, naming the wrong settings. */
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
  throw new CaissonError("invalid", `the configuration is invalid: ${tellProblems(parsed.problems)}`, {
    hint: file === null ? "Check the CAISSON_… variables." : `Check ${file.path} and the CAISSON_… variables.`,
  });
}
