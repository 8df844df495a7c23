import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { defineAgent } from "../agent/file/define-agent.ts";
import { type AgentOrigin, findAgent, findAgents } from "../agent/file/find-agents.ts";
import { parseAgentFile } from "../agent/file/parse-agent-file.ts";
import { CaissonError } from "../contract/error.ts";
import type { ParsedArguments } from "./command.ts";
import type { CliContext } from "./context.ts";
import { line, messageLines } from "./line.ts";
import { inputsFrom } from "./option-values.ts";
import { agentPlaces } from "./station.ts";
import { table } from "./table.ts";

const whose: Record<AgentOrigin, string> = { own: "you", "built-in": "Caisson", folder: "nobody" };

/** Every agent's file; of two with one name the first is the one that the name means. */
export async function ls(context: CliContext, given: ParsedArguments): Promise<number> {
  const found = await findAgents(agentPlaces(context));
  const agents = found.map((agent) => ({ ...agent, hidden: found.find(({ name }) => name === agent.name)?.path !== agent.path }));
  if (given.flag("json")) {
    const rows = agents.map(({ file, ...agent }) =>
      file instanceof CaissonError ? { ...agent, error: file.toJSON() } : { ...agent, description: file.frontmatter.description ?? "" },
    );
    await context.stdout.printJson(rows);
    return 0;
  }
  const rows = agents.map(({ name, path, origin, hidden, file }) => [
    hidden ? `${name} (by path only)` : name,
    file instanceof CaissonError ? "broken, see caisson agent validate" : (file.frontmatter.description ?? ""),
    whose[origin],
    path,
  ]);
  await context.stdout.print(table([["AGENT", "DESCRIPTION", "VOUCHED FOR BY", "FILE"], ...rows]));
  return 0;
}

export async function show(context: CliContext, given: ParsedArguments): Promise<number> {
  const { file } = await findAgent(given.positionals[0] ?? "coder", agentPlaces(context));
  const definition = await defineAgent(file, { input: inputsFrom(given) });
  await (given.flag("json") ? context.stdout.printJson(definition) : context.stdout.printJson(definition, { indent: 2 }));
  return 0;
}

/** Every complaint about every file, with its line; exit 1 when there is one. */
export async function validate(context: CliContext, given: ParsedArguments): Promise<number> {
  const results: { path: string; error: CaissonError | null }[] = [];
  for (const word of given.positionals) {
    const path = resolve(context.cwd, word);
    try {
      const source = await readFile(path, "utf8").catch((error: unknown) => {
        throw new CaissonError("not_found", `${word} cannot be read`, { cause: error });
      });
      await defineAgent(parseAgentFile(word, source), { checkInput: false });
      results.push({ path: word, error: null });
    } catch (error) {
      if (!(error instanceof CaissonError)) throw error;
      results.push({ path: word, error });
    }
  }
  if (given.flag("json")) await context.stdout.printJson(results.map(({ path, error }) => ({ path, error: error?.toJSON() ?? null })));
  else
    for (const { path, error } of results) await context.stdout.print(error === null ? line`${path}: good` : messageLines(error.message));
  return results.some(({ error }) => error !== null) ? 1 : 0;
}
