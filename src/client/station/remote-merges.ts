import type { MergeVerbs } from "../../station/merges/verbs.ts";
import type { Client } from "../connect.ts";
import { remoteDriven } from "./remote-driven.ts";

export function remoteMerges({ merges }: Pick<Client, "merges">): MergeVerbs {
  return {
    // Which merges are parts of something is not asked over the wire.
    ...remoteDriven({ ...merges, list: ({ parent: _, ...query }) => merges.list(query) }),
    start: (request) => merges.start(request),
    // Who says so is known by the token.
    resolve: (word, request) => merges.resolve(word, request),
  };
}
