import { join } from "node:path";

/** The places to search for agents. */
export interface AgentPlaces {
  /** The folder that relative paths start from. */
  cwd: string;
  /** The user's own folder. Its files may request anything. */
  ownFolder: string | null;
  /**
   * Other folders that the user's configuration names. They take precedence over the built-in agents, but their files
   * get no extra rights.
   */
  namedFolders: readonly string[];
  /** The agent folders of the project. They come last, so an agent of the project cannot hide another one. */
  folders: readonly string[];
}

/** Returns the folders in which a project folder may have agents. */
export function foldersOfAgents(folder: string): string[] {
  return [join(folder, ".caisson", "agents"), join(folder, "agents")];
}
