import { join } from "node:path";

/** Where agents are looked for. */
export interface AgentPlaces {
  /** Paths are relative to it. */
  cwd: string;
  /** The user's own: files there may ask for anything. */
  ownFolder: string | null;
  /**
   * Further places that the user's configuration names. They go over the built-in agents; what their files may do is
   * not settled by that.
   */
  namedFolders: readonly string[];
  /** Of the folder that is worked in. They hide nothing. */
  folders: readonly string[];
}

/** Where a folder keeps its agents. */
export function foldersOfAgents(folder: string): string[] {
  return [join(folder, ".caisson", "agents"), join(folder, "agents")];
}
