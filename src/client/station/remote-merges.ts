import type { DrivenList } from "../../contract/driven.ts";
import { CaissonError } from "../../contract/error.ts";
import type { MergeVerbs } from "../../station/merges/verbs.ts";
import type { Client } from "../connect.ts";

/** How many things one answer holds at most. */
const PAGE_MAX = 1000;

export function remoteMerges({ merges }: Pick<Client, "merges">): MergeVerbs {
  return {
    start: (request) => merges.start(request),
    get: (word) => merges.get(word),
    list: (options = {}) => listed(merges, options),
    events: (word, options = {}) => merges.events(word, options),
    async wait(word, { orPerson, signal } = {}) {
      try {
        return await merges.wait(word, { ...(orPerson !== undefined && { orPerson }), ...(signal && { signal }) });
      } catch (error) {
        if (signal?.aborted) throw new CaissonError("cancelled", `waiting for ${word} was given up`);
        throw error;
      }
    },
    // Who says so is known by the token.
    resolve: (word, request) => merges.resolve(word, request),
    cancel: (word, { text }) => merges.cancel(word, { ...(text !== undefined && { text }) }),
    pause: (word, { text }) => merges.pause(word, { ...(text !== undefined && { text }) }),
    resume: (word) => merges.resume(word),
    remove: (word) => merges.remove(word),
  };
}

async function listed(
  merges: Client["merges"],
  { limit = PAGE_MAX, parent: _, ...rest }: Parameters<MergeVerbs["list"]>[0] & object,
): Promise<DrivenList> {
  const found: DrivenList = await merges.list({ ...rest, limit: Math.min(limit, PAGE_MAX) });
  while (found.next !== null && found.items.length < limit) {
    const page = await merges.list({ ...rest, cursor: found.next, limit: Math.min(limit - found.items.length, PAGE_MAX) });
    found.items.push(...page.items);
    found.next = page.next;
  }
  return found;
}
