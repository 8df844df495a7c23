import { CaissonError } from "../../contract/error.ts";

/** Candidates that an error names; the rest are counted. */
const NAMED_MAX = 10;

export interface Candidate {
  id: string;
  name?: string | null | undefined;
}

/** Whether a word is the beginning of ids of a kind. Their prefix alone is not: it stands for all of them. */
export function isIdPrefix(kind: "sb" | "sn" | "run" | "inc" | "spec" | "ship", word: string): boolean {
  return new RegExp(`^${kind}_[a-z2-7]{1,12}$`).test(word);
}

/** The one thing that a word stands for. Throws `not_found`, and `invalid` with the candidates for more than one. */
export function oneOf(word: string, found: readonly Candidate[], options: { what: string; listedBy: string }): string {
  const { what, listedBy } = options;
  const [only] = found;
  if (only === undefined) throw new CaissonError("not_found", `there is no ${what} ${word}`, { hint: `\`${listedBy}\` lists them.` });
  if (found.length === 1) return only.id;
  const named = found.slice(0, NAMED_MAX).map(({ id, name }) => (name ? `${id} (${name})` : id));
  const more = found.length > NAMED_MAX ? ` and ${found.length - NAMED_MAX} more` : "";
  throw new CaissonError("invalid", `${word} stands for more than one ${what}`, {
    hint: `Which one: ${named.join(", ")}${more}?`,
    details: { candidates: found.map(({ id }) => id) },
  });
}
