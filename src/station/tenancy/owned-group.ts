import { CaissonError } from "../../contract/error/error.ts";
import type { OwnerView } from "../../contract/token/owner.ts";
import type { declaredVerbs } from "../../verbs/declared-verbs.ts";
import type { GroupName, Station } from "../../verbs/station.ts";
import type { OwnedThing, VerbFacts } from "../../verbs/verb.ts";
import { verbFacts } from "../../verbs/verb-facts.ts";
import { lookUpFirst } from "../names/with-lookup.ts";

type Groups = typeof declaredVerbs;
type OwnedByHand<Group extends GroupName> = {
  [Name in keyof Groups[Group]]: Groups[Group][Name] extends { owned: "by hand" } ? Name : never;
}[keyof Groups[Group]];

/** For each kind of thing, a lookup among those that the caller sees. */
export type OwnLookups = Record<OwnedThing, (word: string) => Promise<string>>;
export interface OwnView extends OwnerView {
  own: OwnLookups;
}

/**
 * Returns the verbs of a group as one owner sees them. Each verb must declare whose things it touches; a new verb does
 * not compile without the declaration. The verbs that are owned `by hand` are implemented here.
 */
export function ownedGroup<Group extends GroupName>(
  group: Group,
  station: Pick<Station, Group>,
  view: OwnView,
  byHand: Pick<Station[Group], OwnedByHand<Group> & keyof Station[Group]>,
): Station[Group] {
  const verbs = station[group];
  const owned = Object.entries(verbFacts[group]).map(([name, facts]) => [name, ownedVerb(name, facts, { verbs, view, byHand })]);
  return Object.fromEntries(owned) as Station[Group];
}

type Verb = (...args: unknown[]) => unknown;

function ownedVerb(
  name: string,
  { owned, kind }: VerbFacts,
  { verbs, view, byHand }: { verbs: object; view: OwnView; byHand: object },
): Verb {
  const verb = Reflect.get(verbs, name) as Verb;
  switch (owned) {
    case "by hand":
      return Reflect.get(byHand, name) as Verb;
    case "everyone":
      return verb;
    case "admin":
      return view.sees === "own" ? () => refuse(name) : verb;
    default:
      return lookUpFirst(verb, { lookup: view.own[owned], kind });
  }
}

/** The route should already require the scope `admin`. This check covers a route that does not. */
function refuse(name: string): never {
  throw new CaissonError("denied", `${name} affects the things of every owner`, {
    hint: "Use a token with the scope admin.",
  });
}

/** Returns whether the request is for another owner, whose things the caller cannot see. */
export function isOthers(options: { owner?: string | undefined }, owner: string): boolean {
  return options.owner !== undefined && options.owner !== owner;
}
