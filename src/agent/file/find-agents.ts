import { readdir, realpath } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { CaissonError } from "../../contract/error.ts";
import { parseAgentReference } from "../../contract/machine-names.ts";
import { readRegularFile } from "../../lib/read-regular-file.ts";
import type { AgentPlaces } from "./agent-places.ts";
import { type AgentFile, parseAgentFile } from "./parse-agent-file.ts";

/** Who vouches for an agent's file: the user, Caisson itself, or nobody yet. */
export type AgentOrigin = "own" | "built-in" | "folder";

export const builtInAgents = import.meta.dirname;
const AGENTS_MAX = 1000;
/** Bigger is no agent's file. */
const FILE_BYTES_MAX = 4_000_000;

export interface FoundAgent {
  name: string;
  path: string;
  origin: AgentOrigin;
  /** The file, or why it cannot be used. */
  file: AgentFile | CaissonError;
}

export interface ChosenAgent extends FoundAgent {
  file: AgentFile;
  /** Files of the folder with the same name, which are not used. */
  passedOver: readonly string[];
}

/**
 * Every agent, those that win by name first: the user's own, those of the places the user named, the built-in ones, the
 * folder's. A broken file is listed with its error and hides nothing else.
 */
export async function findAgents(places: AgentPlaces): Promise<FoundAgent[]> {
  const folders: [string, AgentOrigin][] = [
    ...(places.ownFolder === null ? [] : [[places.ownFolder, "own"] as [string, AgentOrigin]]),
    ...places.namedFolders.map((folder): [string, AgentOrigin] => [folder, "folder"]),
    [builtInAgents, "built-in"],
    ...places.folders.map((folder): [string, AgentOrigin] => [folder, "folder"]),
  ];
  const found = new Map<string, FoundAgent>();
  for (const [folder, origin] of folders) {
    for (const path of await agentFilesIn(folder)) {
      if (!found.has(path)) found.set(path, await loadAgent(path, origin));
    }
  }
  return [...found.values()];
}

/** Paths of the agent files that lie in a folder; none when there is no such folder. */
export async function agentFilesIn(folder: string): Promise<string[]> {
  const names = await readdir(folder).catch(() => []);
  return names
    .filter((name) => name.endsWith(".prompt"))
    .sort()
    .slice(0, AGENTS_MAX)
    .map((name) => join(folder, name));
}

/**
 * An agent by name or by the path of its file. Throws `not_found` naming those there are, `invalid` for a broken file.
 */
export async function findAgent(nameOrPath: string, places: AgentPlaces): Promise<ChosenAgent> {
  const asked = parseAgentReference(nameOrPath);
  if (asked.kind === "file") return usable(await agentAt(resolve(places.cwd, asked.path), places), []);
  const all = await findAgents(places);
  const [chosen, ...others] = all.filter((each) => each.name === asked.name);
  if (chosen)
    return usable(
      chosen,
      others.filter(({ origin }) => origin === "folder").map(({ path }) => path),
    );
  const names = new Set(all.map((each) => each.name));
  const looked = [places.ownFolder, ...places.namedFolders, ...places.folders].filter((folder) => folder !== null);
  throw new CaissonError("not_found", `there is no agent ${JSON.stringify(nameOrPath)}`, {
    hint: `There are: ${[...names].join(", ")}. Agents are .prompt files in ${looked.join(", ")}.`,
  });
}

/**
 * The agent in this file. A path says which file is meant, not who vouches for it: that is told by the folder it really
 * lies in.
 */
export async function agentAt(path: string, places: Pick<AgentPlaces, "ownFolder">): Promise<FoundAgent> {
  const real = async (folder: string) => await realpath(folder).catch(() => null);
  const folder = await real(dirname(path));
  const isIn = async (other: string | null) => other !== null && folder !== null && folder === (await real(other));
  const origin = (await isIn(places.ownFolder)) ? "own" : (await isIn(builtInAgents)) ? "built-in" : "folder";
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
      error instanceof CaissonError ? error : new CaissonError("not_found", `the agent's file ${path} cannot be read`, { cause: error });
    return { name: fromPath, path, origin, file: failure };
  }
}

async function readText(path: string): Promise<string> {
  const found = await readRegularFile(path, { bytesMax: FILE_BYTES_MAX });
  if (found === "not a regular file") throw new CaissonError("invalid", `${path} is not a regular file`);
  if (found === "too large") throw new CaissonError("too_large", `${path} is longer than an agent's file may be`);
  return found.bytes.toString("utf8");
}
