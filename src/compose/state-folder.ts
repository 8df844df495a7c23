import { accessSync, chmodSync, constants, mkdirSync, readdirSync, statSync } from "node:fs";
import { dirname, isAbsolute } from "node:path";
import { CaissonError } from "../contract/error/error.ts";
import { isErrno } from "../lib/failures.ts";
import { realPathOrNull } from "../lib/paths.ts";

const HINT = "Set CAISSON_HOME to a folder of your own, such as ~/.local/state/caisson.";
/** The kernel's file systems. Nothing can be stored there, and creating a folder there may hang. */
const kernelTrees = ["/proc", "/sys", "/dev"];
const STICKY = 0o1000;
/** Any of these entries identifies a folder as a state folder. */
const madeHere = ["log.db", "sandboxes", "sessions", "station", "tokens", "elsewhere", "config.json"];

/**
 * Creates the state folder if it does not exist, and removes other users' access to it. Throws `invalid` if the path
 * cannot be a state folder, `denied` if it cannot be written or others can read it. An existing folder on a read-only
 * file system is accepted: it can still be read.
 */
export function openStateFolder(stateDir: string): void {
  checkStateFolder(stateDir);
  try {
    // Synchronous: two calls are not worth starting the threads of `node:fs/promises`.
    mkdirSync(stateDir, { recursive: true, mode: 0o700 });
    accessSync(stateDir, constants.R_OK | constants.W_OK | constants.X_OK);
    keepOthersOut(stateDir);
  } catch (error) {
    if (error instanceof CaissonError) throw error;
    const cause = whyNotMade(stateDir, error);
    const isReadOnly = isErrno(cause, "EROFS");
    if (isReadOnly && isFolder(stateDir)) return;
    if (isReadOnly)
      throw new CaissonError("denied", `the state folder ${stateDir} cannot be created: the file system is read-only`, {
        cause,
        hint: "Set CAISSON_HOME to a writable folder, such as one in /tmp.",
      });
    if (isErrno(cause, "EEXIST", "ENOTDIR", "ENOENT"))
      throw new CaissonError("invalid", `the state folder ${stateDir} cannot be created: a file is in its place`, { cause, hint: HINT });
    if (!isErrno(cause, "EACCES", "EPERM")) throw cause;
    throw new CaissonError("denied", `the state folder ${stateDir} cannot be written: permission denied`, { cause, hint: HINT });
  }
}

/** Finds the actual error: Node's recursive mkdir reports ENOENT for every failure. */
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
 * Removes other users' access: the folder contains logs, tokens and agents' output. A folder with other content, such
 * as /tmp, is not ours to change; for one that is open to others, throws `denied`.
 */
function keepOthersOut(stateDir: string): void {
  const { mode, uid } = statSync(stateDir);
  if ((mode & 0o077) === 0) return;
  // Created on new volumes by mkfs.
  const names = readdirSync(stateDir).filter((name) => name !== "lost+found");
  const isOurs =
    uid === process.getuid?.() && (mode & STICKY) === 0 && (names.length === 0 || madeHere.some((each) => names.includes(each)));
  if (!isOurs)
    throw new CaissonError("denied", `other users of this machine have access to the state folder ${stateDir}`, {
      hint: `Run \`chmod 700 ${stateDir}\` as its owner, or set CAISSON_HOME to a folder of your own.`,
    });
  chmodSync(stateDir, mode & 0o700);
}

/** Checks the path without creating anything. Throws `invalid`. */
function checkStateFolder(stateDir: string): void {
  if (stateDir === "") throw new CaissonError("invalid", "CAISSON_HOME is empty", { hint: HINT });
  if (!isAbsolute(stateDir)) {
    throw new CaissonError("invalid", `the state folder ${JSON.stringify(stateDir)} is not an absolute path`, { hint: HINT });
  }
  const real = nearestReal(stateDir);
  const tree = kernelTrees.find((each) => real === each || real.startsWith(`${each}/`));
  if (tree === undefined || real.startsWith("/dev/shm/") || real === "/dev/shm") return;
  throw new CaissonError("invalid", `the state folder ${stateDir} is in ${tree}, where nothing can be stored`, { hint: HINT });
}

/** Returns the real path of the folder, or of its nearest existing parent. */
function nearestReal(path: string): string {
  for (let at = path; ; at = dirname(at)) {
    const real = realPathOrNull(at);
    if (real !== null || at === dirname(at)) return real ?? at;
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
