import type { GroupName, Station } from "../../verbs/station.ts";
import type { OwnedThing, VerbFacts } from "../../verbs/verb.ts";
import { verbFacts } from "../../verbs/verb-facts.ts";
import { isStream } from "../../verbs/verb-rules.ts";

type Lookup = (word: string) => Promise<string>;
type Verb = (...args: unknown[]) => unknown;

/** Wraps the verbs of a group to accept an id prefix or a name instead of a full id. */
export function withLookup<Group extends GroupName>(
  group: Group,
  verbs: Station[Group],
  lookups: Partial<Record<OwnedThing, Lookup>>,
): Station[Group] {
  const looked = Object.entries(verbFacts[group]).flatMap(([name, { owned, kind }]) => {
    const lookup = lookups[owned as OwnedThing];
    return lookup === undefined ? [] : [[name, lookUpFirst(Reflect.get(verbs, name) as Verb, { lookup, kind })]];
  });
  return { ...verbs, ...Object.fromEntries(looked) };
}

/** Wraps a verb to look up its first argument. */
export function lookUpFirst(verb: Verb, { lookup, kind }: { lookup: Lookup; kind: VerbFacts["kind"] }): Verb {
  if (!isStream({ kind })) return async (word, ...rest) => await verb(await lookup(word as string), ...rest);
  return async function* (word, ...rest) {
    yield* verb(await lookup(word as string), ...rest) as AsyncIterable<unknown>;
  };
}
