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

/** What the machine, and not Caisson, is the cause of. */
const words: Readonly<Record<string, Words>> = {
  ENOSPC: full,
  EDQUOT: { ...full, what: "the disk quota is used up" },
  EROFS: {
    code: "denied",
    what: "the file system is read-only",
    hint: "Mount it for writing, or point CAISSON_HOME to another folder.",
  },
  EACCES: forbidden,
  EPERM: forbidden,
  EMFILE: tooManyFiles,
  ENFILE: tooManyFiles,
};

/** A failure of the machine that nobody on the way expected, in words; null for any other error. */
export function fromSystem(error: unknown): CaissonError | null {
  if (!(error instanceof Error) || !("code" in error)) return null;
  const known = Object.hasOwn(words, String(error.code)) ? words[String(error.code)] : undefined;
  if (known === undefined) return null;
  const path = "path" in error && typeof error.path === "string" ? error.path : null;
  const at = path === null ? "" : ` at ${path}`;
  return new CaissonError(known.code, `${known.what}${at}`, { cause: error, hint: known.hint, details: { errno: String(error.code) } });
}
