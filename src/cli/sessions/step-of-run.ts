import { CaissonError } from "../../contract/error.ts";

/** `RUN` or `RUN@STEP`: a run or session, and after how many steps of it. */
export function atStep(word: string): { name: string; at?: number } {
  const [, name = word, step] = /^(.*)@([^@]*)$/.exec(word) ?? [];
  return step === undefined ? { name } : { name, at: parseStep(word, step) };
}

/** A number of steps. Throws `invalid`. */
export function parseStep(what: string, text: string): number {
  if (/^\d{1,6}$/.test(text)) return Number(text);
  throw new CaissonError("invalid", `${what}: ${JSON.stringify(text)} is not a number of steps`, {
    hint: "Such as 4; 0 is before the first.",
  });
}
