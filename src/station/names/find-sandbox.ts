import { CaissonError } from "../../contract/error.ts";
import { ChosenName, SandboxId } from "../../contract/ids.ts";
import { isOrphan, type Store } from "../../sandbox/store.ts";
import { isIdPrefix, oneOf } from "./one-of.ts";

const WORDS = { what: "sandbox", listedBy: "caisson sandbox ls" };

/**
 * The sandbox that a word stands for: its id, the beginning of it, or its name. A whole id is not looked for. Throws
 * `invalid` for what is neither and for what stands for several, `not_found`.
 */
export async function findSandbox(word: string, store: Store): Promise<SandboxId> {
  if (SandboxId.safeParse(word).success) return word;
  if (isIdPrefix("sb", word)) {
    const { records, damaged } = await store.list();
    const candidates = [...records.map(({ id, spec: { name } }) => ({ id, name })), ...damaged];
    const found = candidates.filter(({ id }) => id.startsWith(word));
    return oneOf(word, found, WORDS);
  }
  if (ChosenName.safeParse(word).success) return oneOf(word, await sandboxesNamed(word, store), WORDS);
  throw new CaissonError("invalid", `${JSON.stringify(word)} is not a sandbox's id or name`, {
    hint: "An id looks like sb_k3v7q2m5x4ab, and its beginning is enough; `caisson sandbox ls` lists them.",
  });
}

/** Those that live, or were kept. */
export async function sandboxesNamed(name: string, store: Store): Promise<{ id: SandboxId; name: string }[]> {
  const { records } = await store.list();
  return records.filter((record) => record.spec.name === name && !isOrphan(record)).map(({ id }) => ({ id, name }));
}
