import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { absoluteSecrets } from "../contract/absolute-secrets.ts";
import { Config, type ConfigSources, configVariables, leavesOf, modelVariable } from "../contract/config.ts";
import { CaissonError } from "../contract/error.ts";
import { checkValue, tellProblems } from "../contract/plain-problems.ts";
import { isErrno } from "../lib/is-errno.ts";

const CONFIG_BYTES_MAX = 1024 * 1024;

/** Throws `invalid`, naming the file or variable that is wrong. */
export async function loadConfig(options: {
  stateDir: string;
  configDir: string;
  variable: (name: string) => string | undefined;
}): Promise<{ config: Config; file: string | null; sources: ConfigSources }> {
  const read =
    (await readConfigFile(join(options.stateDir, "config.json"))) ?? (await readConfigFile(join(options.configDir, "config.json")));
  const raw = { ...read?.content };
  const sources: Record<string, string> = read === null ? {} : Object.fromEntries(leavesOf(raw).map((name) => [name, read.file]));
  for (const [setting, name] of Object.entries(configVariables)) {
    const value = options.variable(name);
    if (value === undefined || value === "") continue;
    raw[setting] = value;
    sources[setting] = name;
  }
  const model = options.variable(modelVariable);
  if (model !== undefined && model !== "") {
    raw.models = { ...(raw.models as object | undefined), default: model };
    sources["models.default"] = modelVariable;
  }
  const parsed = checkValue(Config, raw);
  if (parsed.success) {
    const secrets = absoluteSecrets(parsed.data.secrets, read === null ? options.configDir : dirname(read.file));
    return { config: { ...parsed.data, secrets }, file: read?.file ?? null, sources };
  }
  throw new CaissonError("invalid", `the configuration is not valid: ${tellProblems(parsed.problems)}`, {
    hint: read === null ? "Look at the CAISSON_… variables." : `Look at ${read.file} and the CAISSON_… variables.`,
  });
}

async function readConfigFile(file: string): Promise<{ file: string; content: Record<string, unknown> } | null> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    if (isErrno(error, "ENOENT")) return null;
    throw new CaissonError("invalid", `the configuration ${file} cannot be read`, { cause: error });
  }
  try {
    const content: unknown = text.length > CONFIG_BYTES_MAX ? null : JSON.parse(text);
    if (typeof content === "object" && content !== null && !Array.isArray(content))
      return { file, content: content as Record<string, unknown> };
  } catch {
    // Falls through: not JSON is the same mistake as JSON that is no object.
  }
  throw new CaissonError("invalid", `the configuration ${file} is not a JSON object`, { hint: `Fix or remove ${file}.` });
}
