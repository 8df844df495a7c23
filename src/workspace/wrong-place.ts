import { userInfo } from "node:os";
import { join } from "node:path";
import { CaissonError } from "../contract/error/error.ts";
import { ignoring } from "../lib/failures.ts";
import { lstatOrNull, realPathOrNull } from "../lib/paths.ts";
import { uploadOfTree } from "../sandbox/uploaded-tree.ts";

export interface KnownPlaces {
  /** The value of `$HOME`. */
  home: string;
  stateDir: string;
}

/** System folders, with everything in them. */
const systemTrees =
  "/boot /etc /proc /sys /bin /sbin /lib /lib32 /lib64 /usr/bin /usr/sbin /usr/lib /usr/lib64 /var/log /var/spool /var/cache /var/backups".split(
    " ",
  );
/** System folders themselves: the folders in them may be ordinary projects. */
const systemFolders = "/dev /home /root /run /run/user /usr /usr/local /var /var/lib".split(" ");
/** Paths that show that a folder holds a person's keys. */
const keyPlaces = [".ssh", ".gnupg", ".password-store", ".aws/credentials", ".kube/config", ".azure", ".config/gcloud"];
const keyFolders = new Set([".ssh", ".gnupg", ".password-store", ".aws", ".kube", ".azure", "gcloud"]);

/**
 * Throws `invalid` for a current folder that is probably a mistake. `option` is the command-line option that names a
 * folder explicitly.
 */
export function refuseWrongPlace(folder: string, options: { places: KnownPlaces; option: string }): void {
  const why = whyWrongPlace(folder, options.places);
  if (why === null) return;
  throw new CaissonError("invalid", `refusing to use the current folder ${folder} as the workspace: ${why}`, {
    hint: `Change to a project folder, name this one with --${options.option} DIR, or start with an empty workspace with --no-workspace.`,
  });
}

/** Returns why the user probably does not want to show the current folder to a sandbox; null for an ordinary folder. */
export function whyWrongPlace(folder: string, places: KnownPlaces): string | null {
  const at = realOr(folder);
  const homes = [places.home, ownHome()].filter((home) => home !== "").map(realOr);
  const state = realOr(places.stateDir);
  if (uploadOfTree(state, at) !== null) return null;
  if (at === state || isBelow(at, state)) return "Caisson keeps its own state there";
  if (homes.includes(at)) return "it is your home folder";
  if (at === "/") return "it is the whole machine";
  if (systemFolders.includes(at) || systemTrees.some((tree) => at === tree || isBelow(at, tree))) return "it is a system folder";
  if (homes.some((home) => isBelow(home, at))) return "it contains your home folder";
  if (isBelow(state, at)) return `Caisson keeps its own state in it, at ${places.stateDir}`;
  const named = at.split("/").find((part) => keyFolders.has(part));
  if (named !== undefined) return `${named} is where keys are kept`;
  const keys = keyPlaces.find((place) => lstatOrNull(join(at, place)) !== null);
  return keys === undefined ? null : `it contains keys (${keys})`;
}

/**
 * Returns whether a folder is the user's home folder, whatever `HOME` says: the next shell reads start-up files there.
 */
export function isHome(folder: string, places: Pick<KnownPlaces, "home">): boolean {
  return [places.home, ownHome()].some((home) => home !== "" && realOr(home) === realOr(folder));
}

function ownHome(): string {
  return ignoring("a user id without an entry has no home", () => userInfo().homedir) ?? "";
}

function realOr(path: string): string {
  return realPathOrNull(path) ?? path;
}

function isBelow(path: string, folder: string): boolean {
  return path !== folder && path.startsWith(folder === "/" ? "/" : `${folder}/`);
}
