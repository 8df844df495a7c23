import { agentLeaves, type Config, configSchema } from "../../contract/config/config.ts";
import { defaultLimits } from "../../contract/defaults/default-limits.ts";
import { HarnessSettings } from "../../contract/harness/harness.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { table } from "../terminal/table.ts";

interface Setting {
  name: string;
  value: unknown;
  /** The source of the value: an option, a variable, a file, or `default`. Null if the setting is not set. */
  from: string | null;
}

export async function showConfig(context: CliContext, args: ParsedArguments): Promise<number> {
  if (args.flag("schema")) {
    await context.stdout.printJson(configSchema(), { indent: 2 });
    return 0;
  }
  const settings = settingsOf(context, args);
  if (args.flag("json")) {
    const { config, stateDir, configFile } = context;
    await context.stdout.printJson({ stateDir, configFile, ...config, settings });
    return 0;
  }
  const rows = settings.map(({ name, value, from }) => [name, formatValue(value), from ?? ""]);
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

function settingsOf(context: CliContext, args: ParsedArguments): Setting[] {
  const home = context.variable("CAISSON_HOME") ? "CAISSON_HOME" : "default";
  const found = names.map((name): Setting => {
    const option = options[name];
    const optionValue = option === undefined ? undefined : args.option(option);
    if (optionValue !== undefined) return { name, value: optionValue, from: `--${option}` };
    const value = settingOf(context.config, name);
    return { name, value: value ?? null, from: value === undefined ? null : (context.configSources[name] ?? "default") };
  });
  return [{ name: "stateDir", value: context.stateDir, from: home }, ...found, ...agentSettings(context)];
}

/** Returns the settings that an agent has by default. */
function agentSettings({ config, configSources }: CliContext): Setting[] {
  const builtIn = leafValues({ harness: HarnessSettings.parse({}) });
  const configured = leafValues(config.agent);
  return [...new Map([...builtIn, ...configured])].map(([name, value]) => ({ name, value, from: configSources[name] ?? "default" }));
}

const leafValues = (agent: object): [string, unknown][] =>
  agentLeaves("agent", agent).map((path) => [path, path.split(".").slice(1).reduce<unknown>(within, agent)]);
const within = (value: unknown, name: string): unknown => (value as Record<string, unknown>)[name];

function settingOf(config: Config, name: string): unknown {
  const [first = "", second] = name.split(".");
  const value = (config as Record<string, unknown>)[first];
  if (second === undefined) return value;
  const inner = (value as Record<string, unknown> | undefined)?.[second];
  return inner ?? (first === "limits" ? (defaultLimits as Record<string, unknown>)[second] : undefined);
}

function formatValue(value: unknown): string {
  if (value === null) return "–";
  return typeof value === "string" ? value : JSON.stringify(value);
}
