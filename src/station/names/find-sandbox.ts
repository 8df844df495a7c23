import { CaissonError } from "../../contract/error/error.ts";
import { ChosenName, SandboxId } from "../../contract/ids.ts";
import { LOCAL_OWNER } from "../../contract/token/owner.ts";
import { isOrphan, isWaiting, type SandboxRecord, type Store } from "../../sandbox/store.ts";
import { type Candidate, isIdPrefix, oneOf } from "./one-of.ts";

const WORDS = { what: "sandbox", listedBy: "caisson sandbox ls" };

/**
 * Resolves a word to a sandbox: its id, an id prefix, or its name. If several owners use the name, the sandbox of the
 * machine's own user wins. A full id is returned without a lookup. Throws `not_found`, and `invalid` for a word that
 * cannot name a sandbox or matches several.
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

/** Throws the same `not_found` as for a sandbox that does not exist. */
export const noSuchSandbox = (word: string): never => oneOf(word, [], WORDS) as never;

/** Like `findSandbox`, among the sandboxes that a caller can see. */
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
  throw new CaissonError("invalid", `${JSON.stringify(word)} is not a sandbox id or name`, {
    hint: "An id looks like sb_k3v7q2m5x4ab, and a unique prefix is enough; `caisson sandbox ls` lists them.",
  });
}

/** Returns the sandboxes with a name, of one owner or of all, except those that died with their creator. */
export async function sandboxesNamed(
  name: string,
  store: Store,
  { owner }: { owner?: string } = {},
): Promise<{ id: SandboxId; name: string }[]> {
  const { records } = await store.list();
  const isNamed = ({ spec: config }: SandboxRecord) =>
    config.name === name && (owner === undefined || (config.owner ?? LOCAL_OWNER) === owner);
  return records.filter((record) => isNamed(record) && !isOrphan(record)).map(({ id }) => ({ id, name }));
}
