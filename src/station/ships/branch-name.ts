import { CaissonError } from "../../contract/error.ts";
import type { BranchKind } from "../../contract/ship.ts";

export const SLUG_CHARACTERS_MAX = 25;
/** Others of the same name that are stepped aside for. */
const SUFFIX_MAX = 99;

/** Some words of a text as a branch's name can hold them: cut between words where there is a place. */
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
 * The first of `name`, `name-2`, `name-3` … that is free among these branches; but before all the one that is at `ours`
 * already: it is what we pushed before something interrupted us. Throws `exists` when there is none.
 */
export function freeBranch(name: string, { taken, ours }: { taken: ReadonlyMap<string, string>; ours: string }): string {
  const candidates = Array.from({ length: SUFFIX_MAX }, (_, index) => (index === 0 ? name : `${name}-${index + 1}`));
  const pushed = candidates.find((each) => taken.get(each) === ours);
  if (pushed !== undefined) return pushed;
  const others = [...taken.keys()];
  const above = others.find((other) => name.startsWith(`${other}/`));
  if (above !== undefined)
    throw new CaissonError("exists", `no branch ${name} can be made beside the remote's branch ${above}`, { hint: "Rename that one." });
  const free = candidates.find((each) => !taken.has(each) && !others.some((other) => other.startsWith(`${each}/`)));
  if (free !== undefined) return free;
  throw new CaissonError("exists", `the remote has ${SUFFIX_MAX} branches named like ${name}`, {
    hint: "Remove some, or give another title.",
  });
}
