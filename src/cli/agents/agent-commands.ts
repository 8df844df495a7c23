import { resolve } from "node:path";
import type { AgentOrigin } from "../../contract/agent/agent-verbs.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { inputsFrom } from "../options/option-values.ts";
import { line, messageLines } from "../terminal/line.ts";
import { table } from "../terminal/table.ts";
import { agentLines } from "./agent-view.ts";

const whose: Record<AgentOrigin, string> = { own: "you", "built-in": "Caisson", folder: "–" };

/** Lists every agent file. If two agents share a name, the name refers to the first. */
export async function ls(context: CliContext, args: ParsedArguments): Promise<number> {
  const agents = await context.station.agents.list();
  if (args.flag("json")) {
    const rows = agents.map(({ fault, description, ...agent }) =>
      fault === null ? { ...agent, description } : { ...agent, error: fault },
    );
    await context.stdout.printJson(rows);
    return 0;
  }
  const rows = agents.map(({ name, path, origin, hidden, description, fault }) => [
    hidden ? `${name} (by path only)` : name,
    fault === null ? description : "broken, see caisson agent validate",
    whose[origin],
    path,
  ]);
  await context.stdout.print(table([["AGENT", "DESCRIPTION", "TRUSTED BY", "FILE"], ...rows]));
  return 0;
}

export async function showAgent(context: CliContext, args: ParsedArguments): Promise<number> {
  const definition = await context.station.agents.show(args.positionals[0] ?? "coder", { input: inputsFrom(args) });
  await (args.flag("json") ? context.stdout.printJson(definition) : context.stdout.print(agentLines(definition)));
  return 0;
}

/** Reports every fault with its file and line; exits with 1 if there is one. */
export async function validate(context: CliContext, args: ParsedArguments): Promise<number> {
  const checked = args.positionals.map(async (word) => ({
    path: word,
    fault: await context.station.agents.validate(resolve(context.cwd, word), { as: word }),
  }));
  const results = await Promise.all(checked);
  if (args.flag("json")) await context.stdout.printJson(results.map(({ path, fault }) => ({ path, error: fault })));
  else
    for (const { path, fault } of results) {
      await context.stdout.print(fault === null ? line`${path}: good` : messageLines(fault.message));
      if (fault?.hint !== undefined) await context.stdout.print(line`hint: ${fault.hint}`);
    }
  return results.some(({ fault }) => fault !== null) ? 1 : 0;
}
