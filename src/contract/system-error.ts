import { CaissonError, type ErrorCode } from "./error.ts";

interface Words {
  code: ErrorCode;
  what: string;
  hint: string;
}

const full: Words = { code: "no_space", what: "there is no space left", hint: "Free some space, or point CAISSON_HOME to another disk." };
const forbidden: Words = {
  code: "denied",
  what: "permission is denied",
  hint: "Caisson's state folder must belong to you: look at it with `ls -ld`, or point CAISSON_HOME to another one.",
};
const tooManyFiles: Words = {
  code: "unavailable",
  what: "too many files are open",
  hint: "Raise the limit with `ulimit -n`, or run fewer at once.",
};

const failedDisk: Words = {
  code: "unavailable",
  what: "the disk failed",
  hint: "Look at the kernel's messages with `dmesg`; check the file system before you use it again.",
};

/** Node's recursive mkdir says ENOENT on a read-only file system, too. */
const unmade: Words = {
  code: "denied",
  what: "a folder cannot be made",
  hint: "Its file system may be read-only. Mount it for writing, or point HOME and CAISSON_HOME to other folders.",
};

/** What the machine, and not Caisson, is the cause of. */
const words: Readonly<Record<string, Words>> = {
  ENOSPC: full,
  EDQUOT: { ...full, what: "the disk quota is used up" },
  EROFS: {
    code: "denied",
    what: "the file system is read-only",
    hint: "Mount it for writing, or point CAISSON_HOME to another folder. The kernel makes one read-only that failed: see `dmesg`.",
  },
  EIO: failedDisk,
  /** Of a file system that the kernel gave up. */
  ESHUTDOWN: failedDisk,
  EACCES: forbidden,
  EPERM: forbidden,
  EMFILE: tooManyFiles,
  ENFILE: tooManyFiles,
};

/** SQLite's primary result codes that the machine is the cause of. */
const databaseWords: Readonly<Record<number, string>> = {
  3: "permission is denied",
  5: "another program holds it for too long",
  8: "it can only be read",
  10: "the disk failed to read or write it",
  11: "it is damaged",
  14: "it cannot be opened",
  26: "it is not a database",
};
const FULL = 13;

function fromDatabase(error: Error): CaissonError | null {
  const code = "errcode" in error ? Number(error.errcode) & 0xff : -1;
  const at = "path" in error && typeof error.path === "string" ? ` ${error.path}` : "";
  if (code === FULL) return new CaissonError("no_space", `the database${at} has no room left`, { cause: error, hint: full.hint });
  const why = databaseWords[code];
  if (why === undefined) return null;
  return new CaissonError("unavailable", `the database${at} cannot be used: ${why}`, {
    cause: error,
    hint: "It must be a file that the user of Caisson may write, in the state folder: look at it with `ls -l`.",
  });
}

/** A failure of the machine that nobody on the way expected, in words; null for any other error. */
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
