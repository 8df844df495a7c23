import { CaissonError } from "../../contract/error.ts";

/**
 * What becomes of each verb for one owner: the machine's, by the caller's scope alone (`shared`); for those who see
 * everything (`refused`); or a call that minds whose things are. Every verb is named, so that a new one is judged
 * before it compiles.
 */
type Decisions<Verbs> = { [Verb in keyof Required<Verbs>]: "shared" | "refused" | Verbs[Verb] };

export function decide<Verbs extends object>(verbs: Verbs, decisions: Decisions<Verbs>): Verbs {
  const decided = Object.entries(decisions).map(([name, decision]) => {
    if (decision === "shared") return [name, Reflect.get(verbs, name)];
    return [name, decision === "refused" ? () => refuse(name) : decision];
  });
  return Object.fromEntries(decided) as Verbs;
}

/** Its route asks for the scope `admin` as well; this is for whoever forgets it there. */
function refuse(name: string): never {
  throw new CaissonError("denied", `${name} concerns what belongs to every owner`, {
    hint: "This needs a token with the scope admin.",
  });
}
