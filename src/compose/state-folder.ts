import { accessSync, constants, mkdirSync, realpathSync, statSync } from "node:fs";
import { dirname, isAbsolute } from "node:path";
import { CaissonError } from "../contract/error.ts";
import { isErrno } from "../lib/is-errno.ts";

const HINT = "Set CAISSON_HOME to a folder of your own, such as ~/.local/state/caisson.";
/** File systems of the kernel's: nothing can be kept there, and making a folder there may never end. */
const kernelTrees = ["/proc", "/sys", "/dev"];

/**
 * Makes the folder in which everything is kept, where it is not there yet. Throws `invalid` for one that cannot be it,
 * `denied` for one that may not be written. A read-only file system is left to who writes: what is there can be read.
 */
export function openStateFolder(stateDir: string): void {
  checkStateFolder(stateDir);
  try {
    // At once: for two calls a command does without the threads of `node:fs/promises`.
    mkdirSync(stateDir, { recursive: true, mode: 0o700 });
    accessSync(stateDir, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (cause) {
    if (isErrno(cause, "EROFS") && isFolder(stateDir)) return;
    if (isErrno(cause, "EEXIST") || isErrno(cause, "ENOTDIR"))
      throw new CaissonError("invalid", `the state folder ${stateDir} cannot be made: a file is in its place`, { cause, hint: HINT });
    if (!isErrno(cause, "EACCES") && !isErrno(cause, "EPERM")) throw cause;
    throw new CaissonError("denied", `the state folder ${stateDir} cannot be written: permission is denied`, { cause, hint: HINT });
  }
}

/** Throws `invalid`. Looks, and makes nothing. */
function checkStateFolder(stateDir: string): void {
  if (stateDir === "") throw new CaissonError("invalid", "CAISSON_HOME is empty", { hint: HINT });
  if (!isAbsolute(stateDir)) {
    throw new CaissonError("invalid", `the state folder ${JSON.stringify(stateDir)} is not an absolute path`, { hint: HINT });
  }
  const real = nearestReal(stateDir);
  const tree = kernelTrees.find((each) => real === each || real.startsWith(`${each}/`));
  if (tree === undefined || real.startsWith("/dev/shm/") || real === "/dev/shm") return;
  throw new CaissonError("invalid", `the state folder ${stateDir} is in ${tree}, where nothing can be kept`, { hint: HINT });
}

/** Where the folder is, or the nearest above it that is there, links followed. */
function nearestReal(path: string): string {
  for (let at = path; ; at = dirname(at)) {
    try {
      return realpathSync(at);
    } catch {
      if (at === dirname(at)) return at;
    }
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
