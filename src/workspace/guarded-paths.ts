import { readdirSync, type Stats } from "node:fs";
import { join } from "node:path";
import { CaissonError } from "../contract/error/error.ts";
import { ifErrnoSync, UNREACHABLE } from "../lib/failures.ts";
import { lstatOrNull } from "../lib/paths.ts";
import { isHome, type KnownPlaces } from "./wrong-place.ts";

const startUpFiles = (
  ".bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin .zlogout .kshrc .cshrc .tcshrc .login .logout " +
  ".inputrc .config/fish .gitconfig .config/git .envrc"
).split(" ");

/** Submodules whose own hooks and settings are guarded. A folder with more is rejected. */
const MODULES_MAX = 64;

/**
 * Returns the files of a read-write folder that must be read-only inside, because they run something outside as soon as
 * a person works there: git's hooks and settings, and shell start-up files. Paths are relative to the folder. Throws
 * `unsupported` if one is missing and could be created inside.
 */
export function guardedPaths(folder: string, places: Pick<KnownPlaces, "home">): string[] {
  if (isHome(folder, places)) {
    throw refusal(`your home folder ${folder} cannot be read-write inside: the sandbox could create missing shell start-up files in it`);
  }
  return [...startUpFiles.filter((name) => lstatOrNull(join(folder, name)) !== null), ...gitPaths(folder)];
}

function gitPaths(folder: string): string[] {
  const found = lstatOrNull(join(folder, ".git"));
  if (found === null) return [];
  // A linked work tree or a submodule: the file names a folder elsewhere, and must keep naming it.
  if (!found.isDirectory()) return [".git"];
  return [".git", ...modulesOf(folder)].flatMap((git) => ["config", "hooks"].map((name) => requirePath(folder, `${git}/${name}`)));
}

function requirePath(folder: string, path: string): string {
  const found: Stats | null = lstatOrNull(join(folder, path));
  if (found === null) throw refusal(`${join(folder, path)} does not exist, so it cannot be made read-only inside`);
  if (found.isSymbolicLink()) throw refusal(`${join(folder, path)} is a link, so its target cannot be protected from changes inside`);
  return path;
}

/** Finds the repositories of submodules. Git stores them in its own folder by name, and names may contain slashes. */
function modulesOf(folder: string): string[] {
  const found: string[] = [];
  const look = (at: string) => {
    if (found.length > MODULES_MAX) throw refusal(`${folder} has more than ${MODULES_MAX} submodules`);
    const names = namesIn(join(folder, at));
    if (names.includes("HEAD")) {
      found.push(at);
      if (names.includes("modules")) look(`${at}/modules`);
      return;
    }
    for (const name of names) look(`${at}/${name}`);
  };
  look(".git/modules");
  return found;
}

function namesIn(path: string): string[] {
  return ifErrnoSync(() => (lstatOrNull(path)?.isDirectory() ? readdirSync(path) : []), UNREACHABLE, []);
}

function refusal(message: string): CaissonError {
  return new CaissonError("unsupported", message, {
    hint: "Pass --allow-hooks to leave hooks, git's settings and start-up files writable, or use the mode overlay, which leaves the folder outside unchanged.",
  });
}
