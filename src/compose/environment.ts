import { userInfo } from "node:os";
import { isAbsolute, join } from "node:path";
import { ignoring } from "../lib/failures.ts";

export type Variables = Readonly<Record<string, string | undefined>>;

const PATH_DEFAULT = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** The places that a program's environment specifies. */
export interface Environment {
  readonly variables: Variables;
  readonly home: string;
  readonly path: string;
  /** `$CAISSON_HOME`, or `caisson` in the user's state folder. */
  readonly stateDir: string;
  /** The folder of the user's configuration. */
  readonly configDir: string;
}

export function readEnvironment(variables: Variables): Environment {
  // Empty counts as unset. A relative home would put everything in the current folder.
  const home = absolute(variables.HOME) ?? ownHome();
  const below = (variable: string | undefined, ...usual: string[]) => join(absolute(variable) ?? join(home, ...usual), "caisson");
  return {
    variables,
    home,
    path: variables.PATH ?? PATH_DEFAULT,
    stateDir: variables.CAISSON_HOME ?? below(variables.XDG_STATE_HOME, ".local", "state"),
    configDir: below(variables.XDG_CONFIG_HOME, ".config"),
  };
}

function ownHome(): string {
  return ignoring("a user id without an entry has no home, and must name the state folder", () => userInfo().homedir) ?? "/nonexistent";
}

/**
 * Rejects relative paths, as the XDG specification requires: they would load the configuration from the current folder.
 */
function absolute(path: string | undefined): string | undefined {
  return path !== undefined && isAbsolute(path) ? path : undefined;
}

/** Returns the path of a user's contexts. */
export function contextsFile(configDir: string): string {
  return join(configDir, "contexts.json");
}
