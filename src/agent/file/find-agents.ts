import { readdir, readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { CaissonError } from "../../contract/error.ts";
import { type AgentFile, parseAgentFile } from "./parse-agent-file.ts";

/** Where agents are looked for, the nearer first; the built-in ones come last. */
export interface AgentPlaces {
  folders: readonly string[];
}

export const builtInAgents = import.meta.dirname;
const AGENTS_MAX = 1000;

export interface FoundAgent {
  name: string;
  path: string;
  /** The file, or why it cannot be used. */
  file: AgentFile | CaissonError;
}

/** Every agent by name; of two with the same name the nearer counts. A broken file is listed with its error and hides nothing else. */
export async function findAgents(places: AgentPlaces): Promise<FoundAgent[]> {
  const found = new Map<string, FoundAgent>();
  for (const folder of [...places.folders, builtInAgents]) {
    const names = await readdir(folder).catch(() => []);
    for (const name of names
      .filter((each) => each.endsWith(".prompt"))
      .sort()
      .slice(0, AGENTS_MAX)) {
      const path = join(folder, name);
      const agent = await loadAgent(path);
      if (!found.has(agent.name)) found.set(agent.name, agent);
    }
  }
  return [...found.values()];
}

/** An agent by name or by the path of its file. Throws `not_found` naming those there are, `invalid` for a broken file. */
export async function findAgent(nameOrPath: string, places: AgentPlaces & { cwd: string }): Promise<AgentFile> {
  const isPath = nameOrPath.endsWith(".prompt") || nameOrPath.includes("/");
  const agent = isPath
    ? await loadAgent(resolve(places.cwd, nameOrPath))
    : (await findAgents(places)).find((each) => each.name === nameOrPath);
  if (!agent) {
    const names = (await findAgents(places)).map((each) => each.name);
    throw new CaissonError("not_found", `There is no agent ${JSON.stringify(nameOrPath)}.`, {
      hint: `There are: ${names.join(", ")}. Agents are .prompt files in ${places.folders.join(", ")}.`,
    });
  }
  if (agent.file instanceof CaissonError) throw agent.file;
  return agent.file;
}

async function loadAgent(path: string): Promise<FoundAgent> {
  const fromPath = path.replace(/^.*\//, "").replace(/\.prompt$/, "");
  try {
    const source = await readFile(path, "utf8");
    const file = parseAgentFile(path, source);
    return { name: file.frontmatter.name ?? fromPath, path, file };
  } catch (error) {
    const failure =
      error instanceof CaissonError ? error : new CaissonError("not_found", `The agent's file ${path} cannot be read.`, { cause: error });
    return { name: fromPath, path, file: failure };
  }
}
