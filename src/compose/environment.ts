import { userInfo } from "node:os";
import { isAbsolute, join } from "node:path";

export type Variables = Readonly<Record<string, string | undefined>>;

const PATH_DEFAULT = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** What a program's environment says about where things are. */
export interface Environment {
  readonly variables: Variables;
  readonly home: string;
  readonly path: string;
  /** `$CAISSON_HOME`, or `caisson` in the user's state folder. */
  readonly stateDir: string;
  /** Of the user's own configuration. */
  readonly configDir: string;
}

export function readEnvironment(variables: Variables): Environment {
  // Empty is as good as not set; from a relative one everything would lie in whatever folder one stands in.
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
  try {
    return userInfo().homedir;
  } catch {
    // A user id without an entry has none; then the state folder has to be named.
    return "/nonexistent";
  }
}

/**
 * As the XDG specification wants it: a relative path is not valid, and would take the configuration from whatever
 * folder one stands in.
 */
function absolute(path: string | undefined): string | undefined {
  return path !== undefined && isAbsolute(path) ? path : undefined;
}

/** Where a user's contexts are kept. */
export function contextsFile(configDir: string): string {
  return join(configDir, "contexts.json");
}
