import { accessSync, chmodSync, constants, mkdirSync, readdirSync, realpathSync, statSync } from "node:fs";
import { dirname, isAbsolute } from "node:path";
import { CaissonError } from "../contract/error.ts";
import { isErrno } from "../lib/is-errno.ts";

const HINT = "Set CAISSON_HOME to a folder of your own, such as ~/.local/state/caisson.";
/** File systems of the kernel's: nothing can be kept there, and making a folder there may never end. */
const kernelTrees = ["/proc", "/sys", "/dev"];
const STICKY = 0o1000;
/** By any of these a folder is known as a state folder. */
const madeHere = ["log.db", "sandboxes", "sessions", "station", "tokens", "elsewhere", "config.json"];

/**
 * Makes the folder in which everything is kept, where it does not exist, and narrows one that other users may enter.
 * Throws `invalid` for one that cannot be it, `denied` for one that may not be written or that others can read. A
 * read-only file system is left to who writes: what is there can be read.
 */
export function openStateFolder(stateDir: string): void {
  checkStateFolder(stateDir);
  try {
    // At once: for two calls a command does without the threads of `node:fs/promises`.
    mkdirSync(stateDir, { recursive: true, mode: 0o700 });
    accessSync(stateDir, constants.R_OK | constants.W_OK | constants.X_OK);
    keepOthersOut(stateDir);
  } catch (error) {
    if (error instanceof CaissonError) throw error;
    const cause = whyNotMade(stateDir, error);
    const isReadOnly = isErrno(cause, "EROFS");
    if (isReadOnly && isFolder(stateDir)) return;
    if (isReadOnly)
      throw new CaissonError("denied", `the state folder ${stateDir} cannot be made: the file system is read-only`, {
        cause,
        hint: "Set CAISSON_HOME to a folder that can be written, such as one in /tmp.",
      });
    if (isErrno(cause, "EEXIST", "ENOTDIR", "ENOENT"))
      throw new CaissonError("invalid", `the state folder ${stateDir} cannot be made: a file is in its place`, { cause, hint: HINT });
    if (!isErrno(cause, "EACCES", "EPERM")) throw cause;
    throw new CaissonError("denied", `the state folder ${stateDir} cannot be written: permission is denied`, { cause, hint: HINT });
  }
}

/** Node's recursive mkdir says ENOENT for whatever keeps it from making a folder. */
function whyNotMade(stateDir: string, error: unknown): unknown {
  if (!isErrno(error, "ENOENT")) return error;
  try {
    accessSync(nearestReal(stateDir), constants.W_OK | constants.X_OK);
    return error;
  } catch (cause) {
    return cause;
  }
}

/**
 * Logs, tokens and what agents wrote are in it. One that holds something else, such as /tmp, is not ours to narrow.
 * Throws `denied`.
 */
function keepOthersOut(stateDir: string): void {
  const { mode, uid } = statSync(stateDir);
  if ((mode & 0o077) === 0) return;
  // A new volume has this folder.
  const names = readdirSync(stateDir).filter((name) => name !== "lost+found");
  const isOurs =
    uid === process.getuid?.() && (mode & STICKY) === 0 && (names.length === 0 || madeHere.some((each) => names.includes(each)));
  if (!isOurs)
    throw new CaissonError("denied", `the state folder ${stateDir} is open to other users of this machine`, {
      hint: `Close it with \`chmod 700 ${stateDir}\` as its owner, or set CAISSON_HOME to a folder of your own.`,
    });
  chmodSync(stateDir, mode & 0o700);
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
