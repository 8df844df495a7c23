import { CaissonError } from "../../contract/error/error.ts";

/** How many candidates an error lists; the rest are only counted. */
const NAMED_MAX = 10;

/** How many matches a lookup reads at most: more than an error lists. */
export const CANDIDATES_MAX = 100;

export interface Candidate {
  id: string;
  name?: string | null | undefined;
}

/** Returns whether a word is a prefix of ids of this kind. The bare `KIND_` is not, because it matches all of them. */
export function isIdPrefix(kind: "sb" | "sn" | "run" | "inc" | "spec" | "ship", word: string): boolean {
  return new RegExp(`^${kind}_[a-z2-7]{1,12}$`).test(word);
}

/**
 * Returns the id of the only match. Throws `not_found` if nothing matches, and `invalid` with the candidates if there
 * are several.
 */
export function oneOf(word: string, found: readonly Candidate[], options: { what: string; listedBy: string }): string {
  const { what, listedBy } = options;
  const [only] = found;
  if (only === undefined) throw new CaissonError("not_found", `there is no ${what} ${word}`, { hint: `\`${listedBy}\` lists them.` });
  if (found.length === 1) return only.id;
  const named = found.slice(0, NAMED_MAX).map(({ id, name }) => (name ? `${id} (${name})` : id));
  const more = found.length > NAMED_MAX ? ` and ${found.length - NAMED_MAX} more` : "";
  throw new CaissonError("invalid", `${word} matches more than one ${what}`, {
    hint: `Use one of these: ${named.join(", ")}${more}.`,
    details: { candidates: found.map(({ id }) => id) },
  });
}
