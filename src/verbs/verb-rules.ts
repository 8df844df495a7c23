import type { RouteName } from "./routes.ts";
import type { GroupName } from "./station.ts";
import type { VerbFacts } from "./verb.ts";
import { verbFacts } from "./verb-facts.ts";

/** The rules by which handlers, calls and remote verbs derive from a declaration. */

/** The facts of a verb that is available over HTTP. */
export type DerivedFacts = VerbFacts & { route: RouteName };

/** Returns the verbs of a group that are available over HTTP and not written by hand. */
export function derivableVerbs(group: GroupName): [name: string, facts: DerivedFacts][] {
  return Object.entries<VerbFacts>(verbFacts[group]).filter((entry): entry is [string, DerivedFacts] => isDerivable(entry[1]));
}

const isDerivable = ({ route, byHand }: VerbFacts): boolean => route !== undefined && byHand !== true;

const isStreamKind = {
  answer: false,
  wait: false,
  items: true,
  bytes: true,
  log: true,
  stream: true,
} as const satisfies Record<NonNullable<VerbFacts["kind"]>, boolean>;

/** Returns whether a verb returns a stream. Any other verb returns a promise. */
export const isStream = ({ kind = "answer" }: Pick<VerbFacts, "kind">): boolean => isStreamKind[kind];
