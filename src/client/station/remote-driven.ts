import type { DrivenList, DrivenView, ListDriven } from "../../contract/driven.ts";
import { CaissonError } from "../../contract/error.ts";
import type { DrivenVerbs } from "../../station/driven/verbs.ts";

/** How many things one answer holds at most. */
const PAGE_MAX = 1000;

/** The calls that are alike for driven things of every kind. */
interface DrivenCalls<Event, View> {
  get(word: string): Promise<View>;
  /** `parent`: as a query has it, where the kind's route knows of it; `none` for those that are nobody's. */
  list(query: Omit<ListDriven, "parent" | "limit"> & { parent?: string; limit: number }): Promise<DrivenList>;
  events(word: string, options: { fromSeq?: number; follow?: boolean; signal?: AbortSignal }): AsyncIterable<Event & { seq: number }>;
  wait(word: string, options: { orPerson?: boolean; signal?: AbortSignal }): Promise<View>;
  cancel(word: string, body: { text?: string }): Promise<View>;
  pause(word: string, body: { text?: string }): Promise<View>;
  resume(word: string): Promise<View>;
  remove(word: string): Promise<unknown>;
}

/** What can be done with driven things of every kind, at a station elsewhere. Who does it is said by the token. */
export function remoteDriven<Event, View extends DrivenView>(calls: DrivenCalls<Event, View>): DrivenVerbs<Event, View> {
  return {
    get: (word) => calls.get(word),
    async list({ limit = PAGE_MAX, parent, ...others } = {}) {
      const rest = { ...others, ...(parent !== undefined && { parent: parent ?? "none" }) };
      const found = await calls.list({ ...rest, limit: Math.min(limit, PAGE_MAX) });
      while (found.next !== null && found.items.length < limit) {
        const page = await calls.list({ ...rest, cursor: found.next, limit: Math.min(limit - found.items.length, PAGE_MAX) });
        found.items.push(...page.items);
        found.next = page.next;
      }
      return found;
    },
    events: (word, options = {}) => calls.events(word, options),
    async wait(word, options = {}) {
      try {
        return await calls.wait(word, options);
      } catch (error) {
        if (options.signal?.aborted) throw new CaissonError("cancelled", `waiting for ${word} was given up`);
        throw error;
      }
    },
    cancel: (word, { text }) => calls.cancel(word, text === undefined ? {} : { text }),
    pause: (word, { text }) => calls.pause(word, text === undefined ? {} : { text }),
    resume: (word) => calls.resume(word),
    async remove(word) {
      await calls.remove(word);
    },
  };
}
