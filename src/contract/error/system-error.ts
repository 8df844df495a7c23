import { CaissonError, type ErrorCode } from "./error.ts";

interface Words {
  code: ErrorCode;
  what: string;
  hint: string;
}

const full: Words = { code: "no_space", what: "no space left", hint: "Free some space, or set CAISSON_HOME to a folder on another disk." };
const forbidden: Words = {
  code: "denied",
  what: "permission denied",
  hint: "Caisson's state folder must belong to you. Check it with `ls -ld`, or set CAISSON_HOME to another folder.",
};
const tooManyFiles: Words = {
  code: "unavailable",
  what: "too many open files",
  hint: "Raise the limit with `ulimit -n`, or run less at once.",
};

const failedDisk: Words = {
  code: "unavailable",
  what: "the disk failed",
  hint: "Check the kernel's messages with `dmesg`, and check the file system before you use it again.",
};

/** Node's recursive mkdir also reports ENOENT on a read-only file system. */
const unmade: Words = {
  code: "denied",
  what: "cannot create a folder",
  hint: "Its file system may be read-only. Mount it for writing, or set HOME and CAISSON_HOME to other folders.",
};

/** Failures that are caused by the machine, not by Caisson. */
const words: Readonly<Record<string, Words>> = {
  ENOSPC: full,
  EDQUOT: { ...full, what: "disk quota exceeded" },
  EROFS: {
    code: "denied",
    what: "the file system is read-only",
    hint: "Mount it for writing, or set CAISSON_HOME to another folder. The kernel makes a failed file system read-only: see `dmesg`.",
  },
  EIO: failedDisk,
  /** The kernel has shut down the file system. */
  ESHUTDOWN: failedDisk,
  EACCES: forbidden,
  EPERM: forbidden,
  EMFILE: tooManyFiles,
  ENFILE: tooManyFiles,
};

/** SQLite's primary result codes that are caused by the machine. */
const databaseWords: Readonly<Record<number, string>> = {
  3: "permission denied",
  5: "another program has locked it for too long",
  8: "it is read-only",
  10: "the disk failed to read or write it",
  11: "it is damaged",
  14: "it cannot be opened",
  26: "it is not a database",
};
const FULL = 13;

function fromDatabase(error: Error): CaissonError | null {
  const code = "errcode" in error ? Number(error.errcode) & 0xff : -1;
  const at = "path" in error && typeof error.path === "string" ? ` ${error.path}` : "";
  if (code === FULL) return new CaissonError("no_space", `no space left for the database${at}`, { cause: error, hint: full.hint });
  const why = databaseWords[code];
  if (why === undefined) return null;
  return new CaissonError("unavailable", `the database${at} cannot be used: ${why}`, {
    cause: error,
    hint: "It must be a file in the state folder that Caisson's user may write. Check it with `ls -l`.",
  });
}

/** Translates an unexpected failure of the machine; returns null for any other error. */
export function fromSystem(error: unknown): CaissonError | null {
  if (!(error instanceof Error) || !("code" in error)) return null;
  if (error.code === "ERR_SQLITE_ERROR") return fromDatabase(error);
  const isUnmade = error.code === "ENOENT" && "syscall" in error && error.syscall === "mkdir";
  const known = isUnmade ? unmade : Object.hasOwn(words, String(error.code)) ? words[String(error.code)] : undefined;
  if (known === undefined) return null;
  const path = "path" in error && typeof error.path === "string" ? error.path : null;
  const at = path === null ? "" : ` at ${path}`;
  return new CaissonError(known.code, `${known.what}${at}`, { cause: error, hint: known.hint, details: { errno: String(error.code) } });
}
