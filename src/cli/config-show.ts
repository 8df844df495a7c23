import type { Given } from "./command.ts";
import { configVariables } from "./config.ts";
import type { CliContext } from "./context.ts";
import { table } from "./table.ts";

export async function run(context: CliContext, given: Given): Promise<number> {
  const { config, stateDir } = context;
  if (given.switched("json")) {
    await context.stdout.write(`${JSON.stringify({ stateDir, configFile: context.configFile, ...config })}\n`);
    return 0;
  }
  const shown = (name: keyof typeof config): string => {
    const value = config[name];
    return value === undefined ? "–" : typeof value === "string" ? value : JSON.stringify(value);
  };
  const variables: Partial<Record<string, string>> = configVariables;
  const from = (name: string): string => {
    const variable = variables[name];
    return variable !== undefined && context.variable(variable) ? variable : (context.configFile ?? "default");
  };
  const names = ["runtime", "fallbackRuntime", "ociRuntime", "image", "dockerImage", "limits"] as const;
  const rows = names.map((name) => [name, shown(name), shown(name) === "–" ? "" : from(name)]);
  await context.stdout.write(
    table([["SETTING", "VALUE", "FROM"], ["stateDir", stateDir, context.variable("CAISSON_HOME") ? "CAISSON_HOME" : "default"], ...rows]),
  );
  return 0;
}
