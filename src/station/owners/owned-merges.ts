import type { OwnerView } from "../../contract/owner.ts";
import { ownedDriven } from "../driven/owned-driven.ts";
import { mergeKindFacts } from "../merges/merge-kind-facts.ts";
import type { MergeVerbs } from "../merges/verbs.ts";
import type { Station } from "../station.ts";
import { decide } from "./decide.ts";
import type { OwnThings } from "./own-things.ts";

export function ownedMerges({ merges }: Pick<Station, "merges">, view: OwnerView & { own: OwnThings }): MergeVerbs {
  const { owner, own } = view;
  const { find, ...shared } = ownedDriven(merges, view, mergeKindFacts);
  return decide(merges, {
    ...shared,
    // Their number and parent are for the station's own parts.
    async start(request) {
      const sessions: string[] = [];
      for (const word of request.sessions) sessions.push(await own.session(word));
      return await merges.start({ ...request, sessions }, { owner });
    },
    resolve: async (word, request, options) => await merges.resolve(await find(word), request, options),
  });
}
