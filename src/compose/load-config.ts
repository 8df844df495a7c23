import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "../contract/config/config.ts";
import { type ConfigSources, configVariables, modelVariable } from "../contract/config/config-sources.ts";
import { defaultConfig } from "../contract/defaults/default-config.ts";
import { CaissonError } from "../contract/error/error.ts";
import { isErrno, jsonOrNull } from "../lib/failures.ts";

const CONFIG_BYTES_MAX = 1024 * 1024;

export interface LoadedConfig {
  config: Config;
  file: string | null;
  sources: ConfigSources;
}

/** The configuration before validation. */
export interface FoundConfig {
  /** Null if there is no file. */
  file: { path: string; content: Record<string, unknown> } | null;
  /** Settings from environment variables. */
  variables: readonly { name: string; setting: string; value: string }[];
  model: string | null;
  configDir: string;
}

/** Throws `invalid`, naming the wrong file or variable. */
export async function loadConfig(options: {
  stateDir: string;
  configDir: string;
  variable: (name: string) => string | undefined;
}): Promise<LoadedConfig> {
  const { configDir } = options;
  const file = readConfigFile(join(options.stateDir, "config.json")) ?? readConfigFile(join(configDir, "config.json"));
  const variables = Object.entries(configVariables).flatMap(([setting, name]) => {
    const value = options.variable(name);
    return value === undefined || value === "" ? [] : [{ name, setting, value }];
  });
  const model = options.variable(modelVariable) || null;
  // Users without any configuration should not wait for the schemas to load.
  if (file === null && variables.length === 0 && model === null) return { config: defaultConfig(), file: null, sources: {} };
  const { checkConfig } = await import("./check-config.ts");
  return checkConfig({ file, variables, model, configDir });
}

function readConfigFile(path: string): FoundConfig["file"] {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if (isErrno(error, "ENOENT")) return null;
    throw new CaissonError("invalid", `the configuration ${path} cannot be read`, { cause: error });
  }
  const content = text.length > CONFIG_BYTES_MAX ? null : jsonOrNull(text);
  if (typeof content === "object" && content !== null && !Array.isArray(content))
    return { path, content: content as Record<string, unknown> };
  throw new CaissonError("invalid", `the configuration ${path} is not a JSON object`, { hint: `Fix or remove ${path}.` });
}
