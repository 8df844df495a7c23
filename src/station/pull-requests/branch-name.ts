import { CaissonError } from "../../contract/error/error.ts";
import type { BranchKind } from "../../contract/ship/ship.ts";

export const SLUG_CHARACTERS_MAX = 25;
/** The highest number appended to a branch name that is taken. */
const SUFFIX_MAX = 99;

/** Returns the first words of a text in a form that a branch name can hold, cut between words where possible. */
export function slugOf(text: string): string {
  const plain = text
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-|-$/g, "");
  if (plain.length <= SLUG_CHARACTERS_MAX) return plain || "changes";
  const cut = plain.slice(0, SLUG_CHARACTERS_MAX + 1);
  const end = cut.lastIndexOf("-");
  return cut.slice(0, end > 0 ? end : SLUG_CHARACTERS_MAX).replace(/-$/, "");
}

/** `fix/123-a-few-words`; without a ticket `fix/a-few-words`. */
export function branchName({ kind, ticket, slug }: { kind: BranchKind; ticket: string | null; slug: string }): string {
  return `${kind}/${ticket === null ? "" : `${ticket}-`}${slug}`;
}

/**
 * Returns the first of `name`, `name-2`, `name-3` … that the remote does not have. A branch that is already at `ours`
 * wins over all of them: we pushed it before an interruption. Throws `exists` if every name is taken.
 */
export function freeBranch(name: string, { taken: branches, ours }: { taken: ReadonlyMap<string, string>; ours: string }): string {
  const candidates = Array.from({ length: SUFFIX_MAX }, (_, index) => (index === 0 ? name : `${name}-${index + 1}`));
  const pushed = candidates.find((each) => branches.get(each) === ours);
  if (pushed !== undefined) return pushed;
  const others = [...branches.keys()];
  const above = others.find((other) => name.startsWith(`${other}/`));
  if (above !== undefined)
    throw new CaissonError("exists", `the remote's branch ${above} blocks the name ${name}`, { hint: "Rename that branch." });
  const free = candidates.find((each) => !branches.has(each) && !others.some((other) => other.startsWith(`${each}/`)));
  if (free !== undefined) return free;
  throw new CaissonError("exists", `the remote already has ${SUFFIX_MAX} branches named like ${name}`, {
    hint: "Remove some of them, or choose another title.",
  });
}
