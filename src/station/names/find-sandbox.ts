import { CaissonError } from "../../contract/error.ts";
import { ChosenName, SandboxId } from "../../contract/ids.ts";
import { LOCAL_OWNER } from "../../contract/owner.ts";
import { isOrphan, isWaiting, type SandboxRecord, type Store } from "../../sandbox/store.ts";
import { type Candidate, isIdPrefix, oneOf } from "./one-of.ts";

const WORDS = { what: "sandbox", listedBy: "caisson sandbox ls" };

/**
 * The sandbox that a word stands for: its id, the beginning of it, or its name; of several that owners call by the same
 * name, the machine's own user's. A whole id is not looked for. Throws `invalid` for what is neither and for what
 * stands for several, `not_found`.
 */
export async function findSandbox(word: string, store: Store): Promise<SandboxId> {
  return await sandboxAmong(word, {
    async all() {
      const { records, damaged } = await store.list();
      return [...records.filter((record) => !isWaiting(record)).map(({ id, spec: { name } }) => ({ id, name })), ...damaged];
    },
    async named(name) {
      const own = await sandboxesNamed(name, store, { owner: LOCAL_OWNER });
      return own.length > 0 ? own : await sandboxesNamed(name, store);
    },
  });
}

/** Throws `not_found`, as for every sandbox that is not there. */
export const noSuchSandbox = (word: string): never => oneOf(word, [], WORDS) as never;

/** The same among those that somebody sees. */
export async function sandboxAmong(
  word: string,
  seen: { all(): Promise<readonly Candidate[]>; named(name: string): Promise<readonly Candidate[]> },
): Promise<SandboxId> {
  if (SandboxId.safeParse(word).success) return word;
  if (isIdPrefix("sb", word)) {
    const found = (await seen.all()).filter(({ id }) => id.startsWith(word));
    return oneOf(word, found, WORDS);
  }
  if (ChosenName.safeParse(word).success) return oneOf(word, await seen.named(word), WORDS);
  throw new CaissonError("invalid", `${JSON.stringify(word)} is not a sandbox's id or name`, {
    hint: "An id looks like sb_k3v7q2m5x4ab, and its beginning is enough; `caisson sandbox ls` lists them.",
  });
}

/** Those that live, or were kept; of one owner, or of all. */
export async function sandboxesNamed(
  name: string,
  store: Store,
  { owner }: { owner?: string } = {},
): Promise<{ id: SandboxId; name: string }[]> {
  const { records } = await store.list();
  const isAsked = ({ spec }: SandboxRecord) => spec.name === name && (owner === undefined || (spec.owner ?? LOCAL_OWNER) === owner);
  return records.filter((record) => isAsked(record) && !isOrphan(record)).map(({ id }) => ({ id, name }));
}
