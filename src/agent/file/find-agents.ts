import { readdir } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { CaissonError } from "../../contract/error/error.ts";
import { parseAgentReference } from "../../contract/machine/machine-names.ts";
import { ifErrno, UNREACHABLE } from "../../lib/failures.ts";
import { realPathOrNull } from "../../lib/paths.ts";
import { readRegularFile } from "../../lib/read-regular-file.ts";
import type { AgentPlaces } from "./agent-places.ts";
import { type AgentFile, parseAgentFile } from "./parse-agent-file.ts";

/** Who trusts an agent file: the user, Caisson itself, or no one yet. */
export type AgentOrigin = "own" | "built-in" | "folder";

export const builtInAgents = import.meta.dirname;
const AGENTS_MAX = 1000;
/** Larger files are not agent files. */
const FILE_BYTES_MAX = 4_000_000;

export interface FoundAgent {
  name: string;
  path: string;
  origin: AgentOrigin;
  /** The parsed file, or why it cannot be used. */
  file: AgentFile | CaissonError;
}

export interface ChosenAgent extends FoundAgent {
  file: AgentFile;
  /** Files in the project folders with the same name, which are ignored. */
  passedOver: readonly string[];
}

/**
 * Returns every agent in order of precedence: from the user's folder, the configured folders, the built-in agents, the
 * project folders. A broken file is listed with its error and hides nothing else.
 */
export async function findAgents(places: AgentPlaces): Promise<FoundAgent[]> {
  const folders: [string, AgentOrigin][] = [
    ...(places.ownFolder === null ? [] : [[places.ownFolder, "own"] as [string, AgentOrigin]]),
    ...places.namedFolders.map((folder): [string, AgentOrigin] => [folder, "folder"]),
    [builtInAgents, "built-in"],
    ...places.folders.map((folder): [string, AgentOrigin] => [folder, "folder"]),
  ];
  const found = new Map<string, FoundAgent>();
  const agents = await Promise.all(folders.map(([folder, origin]) => (origin === "built-in" ? loadBuiltIn() : loadFolder(folder, origin))));
  for (const agent of agents.flat()) if (!found.has(agent.path)) found.set(agent.path, agent);
  return [...found.values()];
}

async function loadFolder(folder: string, origin: AgentOrigin): Promise<FoundAgent[]> {
  return await Promise.all((await agentFilesIn(folder)).map((path) => loadAgent(path, origin)));
}

/** Our own files do not change while the program runs, and every run looks for its agent among them. */
function loadBuiltIn(): Promise<FoundAgent[]> {
  builtIn ??= loadFolder(builtInAgents, "built-in");
  return builtIn;
}

let builtIn: Promise<FoundAgent[]> | undefined;

/** Returns the paths of the agent files in a folder; empty if the folder does not exist. */
export async function agentFilesIn(folder: string): Promise<string[]> {
  const names = await ifErrno(readdir(folder), UNREACHABLE, []);
  return names
    .filter((name) => name.endsWith(".prompt"))
    .sort()
    .slice(0, AGENTS_MAX)
    .map((name) => join(folder, name));
}

/**
 * Finds an agent by name or by the path of its file. Throws `not_found` with a list of the agents, `invalid` for a
 * broken file.
 */
export async function findAgent(nameOrPath: string, places: AgentPlaces): Promise<ChosenAgent> {
  const reference = parseAgentReference(nameOrPath);
  if (reference.kind === "file") return usable(await agentAt(resolve(places.cwd, reference.path), places), []);
  const all = await findAgents(places);
  const [chosen, ...others] = all.filter((each) => each.name === reference.name);
  if (chosen)
    return usable(
      chosen,
      others.filter(({ origin }) => origin === "folder").map(({ path }) => path),
    );
  const names = new Set(all.map((each) => each.name));
  const looked = [places.ownFolder, ...places.namedFolders, ...places.folders].filter((folder) => folder !== null);
  throw new CaissonError("not_found", `there is no agent ${JSON.stringify(nameOrPath)}`, {
    hint: `Available agents: ${[...names].join(", ")}. Agents are .prompt files in ${looked.join(", ")}.`,
  });
}

/** Returns the agent in this file. Its real folder decides who trusts it, not the path that names it. */
export async function agentAt(path: string, places: Pick<AgentPlaces, "ownFolder">): Promise<FoundAgent> {
  const folder = realPathOrNull(dirname(path));
  const isIn = (other: string | null) => other !== null && folder !== null && folder === realPathOrNull(other);
  const origin = isIn(places.ownFolder) ? "own" : isIn(builtInAgents) ? "built-in" : "folder";
  return await loadAgent(path, origin);
}

function usable(agent: FoundAgent, passedOver: readonly string[]): ChosenAgent {
  const { file } = agent;
  if (file instanceof CaissonError) throw file;
  return { ...agent, file, passedOver };
}

async function loadAgent(path: string, origin: AgentOrigin): Promise<FoundAgent> {
  const fromPath = path.replace(/^.*\//, "").replace(/\.prompt$/, "");
  try {
    const file = parseAgentFile(path, await readText(path));
    return { name: file.frontmatter.name ?? fromPath, path, origin, file };
  } catch (error) {
    const failure =
      error instanceof CaissonError ? error : new CaissonError("not_found", `the agent file ${path} cannot be read`, { cause: error });
    return { name: fromPath, path, origin, file: failure };
  }
}

async function readText(path: string): Promise<string> {
  const found = await readRegularFile(path, { bytesMax: FILE_BYTES_MAX });
  if (found === "not a regular file") throw new CaissonError("invalid", `${path} is not a regular file`);
  if (found === "too large") throw new CaissonError("too_large", `${path} is too large for an agent file`);
  return found.bytes.toString("utf8");
}
