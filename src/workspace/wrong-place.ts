import { realpathSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { CaissonError } from "../contract/error.ts";
import { lstatOrNull } from "../lib/lstat-or-null.ts";
import { uploadOfTree } from "../sandbox/uploaded-tree.ts";

export interface KnownPlaces {
  /** `$HOME`. */
  home: string;
  stateDir: string;
}

/** With all that is in them. */
const systemTrees =
  "/boot /etc /proc /sys /bin /sbin /lib /lib32 /lib64 /usr/bin /usr/sbin /usr/lib /usr/lib64 /var/log /var/spool /var/cache /var/backups".split(
    " ",
  );
/** By themselves: what lies in them may be anybody's project. */
const systemFolders = "/dev /home /root /run /run/user /usr /usr/local /var /var/lib".split(" ");
/** Folders of which each holds a person's keys, by what shows that it does. */
const keyPlaces = [".ssh", ".gnupg", ".password-store", ".aws/credentials", ".kube/config", ".azure", ".config/gcloud"];
const keyFolders = new Set([".ssh", ".gnupg", ".password-store", ".aws", ".kube", ".azure", "gcloud"]);

/**
 * Throws `invalid` for a folder in which somebody most likely stands by mistake. `option`: the one that names a folder
 * on purpose.
 */
export function refuseWrongPlace(folder: string, options: { places: KnownPlaces; option: string }): void {
  const why = whyWrongPlace(folder, options.places);
  if (why === null) return;
  throw new CaissonError("invalid", `refusing to use the current folder ${folder} as the workspace: ${why}`, {
    hint: `Change to a project's folder. --${options.option} DIR names it on purpose; --no-workspace starts with an empty one.`,
  });
}

/**
 * Why a folder that nobody named, but in which somebody happens to stand, is most likely not what they want to show to
 * a sandbox; null for an ordinary folder.
 */
export function whyWrongPlace(folder: string, places: KnownPlaces): string | null {
  const at = realOr(folder);
  const homes = [places.home, ownHome()].filter((home) => home !== "").map(realOr);
  const state = realOr(places.stateDir);
  if (uploadOfTree(state, at) !== null) return null;
  if (at === state || isBelow(at, state)) return "Caisson keeps its own state there";
  if (homes.includes(at)) return "it is your home folder";
  if (at === "/") return "it is the whole machine";
  if (systemFolders.includes(at) || systemTrees.some((tree) => at === tree || isBelow(at, tree))) return "it is a folder of the system's";
  if (homes.some((home) => isBelow(home, at))) return "your home folder is in it";
  if (isBelow(state, at)) return `Caisson keeps its own state in it, at ${places.stateDir}`;
  const named = at.split("/").find((part) => keyFolders.has(part));
  if (named !== undefined) return `${named} is where keys are kept`;
  const keys = keyPlaces.find((place) => lstatOrNull(join(at, place)) !== null);
  return keys === undefined ? null : `it holds keys (${keys})`;
}

/** The user's home folder, whatever `HOME` says: start-up files there are read by the next shell. */
export function isHome(folder: string, places: Pick<KnownPlaces, "home">): boolean {
  return [places.home, ownHome()].some((home) => home !== "" && realOr(home) === realOr(folder));
}

function ownHome(): string {
  try {
    return userInfo().homedir;
  } catch {
    // A user id without an entry has none.
    return "";
  }
}

function realOr(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

function isBelow(path: string, folder: string): boolean {
  return path !== folder && path.startsWith(folder === "/" ? "/" : `${folder}/`);
}
