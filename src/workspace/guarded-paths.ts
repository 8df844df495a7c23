import { readdirSync, type Stats } from "node:fs";
import { join } from "node:path";
import { CaissonError } from "../contract/error.ts";
import { lstatOrNull } from "../lib/lstat-or-null.ts";
import { isHome, type KnownPlaces } from "./wrong-place.ts";

const startUpFiles = (
  ".bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin .zlogout .kshrc .cshrc .tcshrc .login .logout " +
  ".inputrc .config/fish .gitconfig .config/git .envrc"
).split(" ");

/** Submodules whose own hooks and settings are guarded; with more of them a folder is refused. */
const MODULES_MAX = 64;

/**
 * Files of a folder that is given read-write which run something outside as soon as somebody works there: git's hooks
 * and settings, and shell start-up files. They are to be read-only inside. Relative to the folder. Throws `unsupported`
 * where one is missing that could then be made inside.
 */
export function guardedPaths(folder: string, places: Pick<KnownPlaces, "home">): string[] {
  if (isHome(folder, places)) {
    throw refusal(`your home folder ${folder} cannot be given read-write: shell start-up files that are not there yet could be made in it`);
  }
  return [...startUpFiles.filter((name) => lstatOrNull(join(folder, name)) !== null), ...gitPaths(folder)];
}

function gitPaths(folder: string): string[] {
  const found = lstatOrNull(join(folder, ".git"));
  if (found === null) return [];
  // A work tree or a submodule: it names a folder elsewhere, and must go on doing so.
  if (!found.isDirectory()) return [".git"];
  return [".git", ...modulesOf(folder)].flatMap((git) => ["config", "hooks"].map((name) => required(folder, `${git}/${name}`)));
}

function required(folder: string, path: string): string {
  const found: Stats | null = lstatOrNull(join(folder, path));
  if (found === null) throw refusal(`${join(folder, path)} is not there, so it cannot be made read-only inside`);
  if (found.isSymbolicLink()) throw refusal(`${join(folder, path)} is a link, so what it leads to cannot be kept from changing inside`);
  return path;
}

/** Git keeps the repositories of submodules in its own folder, at their names, which may have slashes. */
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
  try {
    return lstatOrNull(path)?.isDirectory() ? readdirSync(path) : [];
  } catch {
    return [];
  }
}

function refusal(message: string): CaissonError {
  return new CaissonError("unsupported", message, {
    hint: "--allow-hooks gives it with hooks, git's settings and start-up files writable; the mode overlay leaves the folder outside unchanged.",
  });
}
