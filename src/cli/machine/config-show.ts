import { type Config, configSchema } from "../../contract/config.ts";
import { defaultLimits } from "../../contract/default-limits.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { table } from "../terminal/table.ts";

interface Setting {
  name: string;
  value: unknown;
  /** An option, a variable, a file, or `default`; null when it is not set at all. */
  from: string | null;
}

export async function run(context: CliContext, given: ParsedArguments): Promise<number> {
  if (given.flag("schema")) {
    await context.stdout.printJson(configSchema(), { indent: 2 });
    return 0;
  }
  const settings = settingsOf(context, given);
  if (given.flag("json")) {
    const { config, stateDir, configFile } = context;
    await context.stdout.printJson({ stateDir, configFile, ...config, settings });
    return 0;
  }
  const rows = settings.map(({ name, value, from }) => [name, shown(value), from ?? ""]);
  await context.stdout.print(table([["SETTING", "VALUE", "FROM"], ...rows]));
  return 0;
}

const names = [
  "runtime",
  "fallbackRuntime",
  "ociRuntime",
  "image",
  "dockerImage",
  "limits.cpus",
  "limits.memoryBytes",
  "limits.pids",
  "limits.diskBytes",
  "limits.wallClockMs",
  "limits.outputBytes",
  "models.default",
  "models.baseUrl",
  "models.prices",
  "secrets",
  "agentFolders",
  "author.name",
  "author.email",
] as const;
const options: Partial<Record<(typeof names)[number], string>> = { runtime: "runtime", image: "image", "models.default": "model" };

function settingsOf(context: CliContext, given: ParsedArguments): Setting[] {
  const home = context.variable("CAISSON_HOME") ? "CAISSON_HOME" : "default";
  const found = names.map((name): Setting => {
    const option = options[name];
    const asked = option === undefined ? undefined : given.option(option);
    if (asked !== undefined) return { name, value: asked, from: `--${option}` };
    const value = settingOf(context.config, name);
    return { name, value: value ?? null, from: value === undefined ? null : (context.configSources[name] ?? "default") };
  });
  return [{ name: "stateDir", value: context.stateDir, from: home }, ...found];
}

function settingOf(config: Config, name: string): unknown {
  const [first = "", second] = name.split(".");
  const value = (config as Record<string, unknown>)[first];
  if (second === undefined) return value;
  const inner = (value as Record<string, unknown> | undefined)?.[second];
  return inner ?? (first === "limits" ? (defaultLimits as Record<string, unknown>)[second] : undefined);
}

function shown(value: unknown): string {
  if (value === null) return "–";
  return typeof value === "string" ? value : JSON.stringify(value);
}
