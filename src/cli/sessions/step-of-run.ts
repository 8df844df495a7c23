import { CaissonError } from "../../contract/error/error.ts";

/** Parses `RUN` or `RUN@STEP`: a run or session, optionally after a number of its steps. */
export function atStep(word: string): { name: string; at?: number } {
  const [, name = word, step] = /^(.*)@([^@]*)$/.exec(word) ?? [];
  return step === undefined ? { name } : { name, at: parseStep(word, step) };
}

/** Parses a number of steps. Throws `invalid`. */
export function parseStep(what: string, text: string): number {
  if (/^\d{1,6}$/.test(text)) return Number(text);
  throw new CaissonError("invalid", `${what}: ${JSON.stringify(text)} is not a number of steps`, {
    hint: "Use a number such as 4; 0 means before the first step.",
  });
}
