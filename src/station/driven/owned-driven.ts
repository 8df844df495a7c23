import type { DrivenList, DrivenView } from "../../contract/driven.ts";
import type { OwnerView } from "../../contract/owner.ts";
import { oneOf } from "../names/one-of.ts";
import { noSuchThing } from "./driven-log.ts";
import type { Kind } from "./kind.ts";
import type { DrivenVerbs } from "./verbs.ts";

/** More than an error names. */
const CANDIDATES_MAX = 100;
const NOTHING: DrivenList = { items: [], total: 0, totalIsMinimum: false, next: null };

/**
 * The shared verbs as one owner sees them: what belongs to others answers like what does not exist. `find` is for the
 * verbs that a kind adds: it gives the id of a thing that the owner sees.
 */
export function ownedDriven<Event, View extends DrivenView>(
  verbs: DrivenVerbs<Event, View>,
  { owner, sees }: OwnerView,
  kind: Pick<Kind, "name" | "listedBy">,
): DrivenVerbs<Event, View> & { find: (word: string) => Promise<string> } {
  const find = async (word: string): Promise<string> => {
    if (sees === "everything" || /_[a-z2-7]{12}$/.test(word) || !/^[a-z]+_[a-z2-7]{1,11}$/.test(word)) {
      const found = await verbs.get(word);
      if (sees === "own" && found.owner !== owner) throw noSuchThing(kind, word);
      return found.id;
    }
    // Among their own: what others have is not told by how many there are, either.
    const { items } = await verbs.list({ id: word, owner, limit: CANDIDATES_MAX });
    return oneOf(word, items, { what: kind.name, listedBy: kind.listedBy });
  };
  return {
    find,
    get: async (word) => await verbs.get(await find(word)),
    async list(options = {}) {
      if (sees === "everything") return await verbs.list(options);
      return options.owner !== undefined && options.owner !== owner ? NOTHING : await verbs.list({ ...options, owner });
    },
    async *events(word, options) {
      yield* verbs.events(await find(word), options);
    },
    wait: async (word, options) => await verbs.wait(await find(word), options),
    cancel: async (word, options) => await verbs.cancel(await find(word), options),
    pause: async (word, options) => await verbs.pause(await find(word), options),
    resume: async (word, options) => await verbs.resume(await find(word), options),
    remove: async (word) => await verbs.remove(await find(word)),
  };
}
