import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "../contract/config.ts";
import { type ConfigSources, configVariables, modelVariable } from "../contract/config-sources.ts";
import { defaultConfig } from "../contract/default-config.ts";
import { CaissonError } from "../contract/error.ts";
import { isErrno } from "../lib/is-errno.ts";

const CONFIG_BYTES_MAX = 1024 * 1024;

export interface LoadedConfig {
  config: Config;
  file: string | null;
  sources: ConfigSources;
}

/** What was found, before anybody looked at whether it is right. */
export interface FoundConfig {
  /** Null where there is none. */
  file: { path: string; content: Record<string, unknown> } | null;
  /** Of settings, by what sets them. */
  variables: readonly { name: string; setting: string; value: string }[];
  model: string | null;
  configDir: string;
}

/** Throws `invalid`, naming the file or variable that is wrong. */
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
  // Who configured nothing does not wait for the schemas of what could be.
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
  try {
    const content: unknown = text.length > CONFIG_BYTES_MAX ? null : JSON.parse(text);
    if (typeof content === "object" && content !== null && !Array.isArray(content))
      return { path, content: content as Record<string, unknown> };
  } catch {
    // Falls through: not JSON is the same mistake as JSON that is no object.
  }
  throw new CaissonError("invalid", `the configuration ${path} is not a JSON object`, { hint: `Fix or remove ${path}.` });
}
