import { once } from "../lib/once.ts";
import type { GroupName, Station } from "../verbs/station.ts";
import type { VerbFacts } from "../verbs/verb.ts";
import { verbFacts } from "../verbs/verb-facts.ts";
import { isStream } from "../verbs/verb-rules.ts";

type Call = (...args: never[]) => unknown;
type Kind<Verb> = Verb extends (...args: never[]) => AsyncIterable<unknown> ? "stream" : "answer";
type Kinds<Verbs> = { [Name in keyof Verbs]: Kind<Verbs[Name]> };

/**
 * Creates a group of verbs that loads with its first call, so a command does not pay for code that it does not use.
 * `more` gives the kind of each function that is not a verb.
 */
export function lazyGroup<Verbs extends object>(group: GroupName, load: () => Promise<Verbs>, more: Partial<Kinds<Verbs>> = {}): Verbs {
  const kinds = Object.entries<VerbFacts>(verbFacts[group]).map(([name, facts]) => [name, isStream(facts) ? "stream" : "answer"]);
  return lazyVerbs<Verbs>({ ...Object.fromEntries(kinds), ...more }, load);
}

/** Creates a group of verbs that forwards each call to the current group. */
export function forwardGroup<Group extends GroupName>(group: Group, current: () => Station[Group]): Station[Group] {
  const verbs = Object.keys(verbFacts[group]).map((name) => [name, (...args: never[]) => (Reflect.get(current(), name) as Call)(...args)]);
  return Object.fromEntries(verbs) as Station[Group];
}

/** Like `lazyGroup`, but for arbitrary functions. A table gives the kind of each. */
export function lazyVerbs<Verbs extends object>(kinds: Kinds<Verbs>, load: () => Promise<Verbs>): Verbs {
  const loaded = once(load);
  const verb = async (name: string) => Reflect.get(await loaded(), name) as Call;
  const answer =
    (name: string) =>
    async (...args: never[]) =>
      (await verb(name))(...args);
  const stream = (name: string) =>
    async function* (...args: never[]) {
      yield* (await verb(name))(...args) as AsyncIterable<unknown>;
    };
  const verbs = Object.entries(kinds).map(([name, kind]) => [name, kind === "stream" ? stream(name) : answer(name)]);
  return Object.fromEntries(verbs) as Verbs;
}
