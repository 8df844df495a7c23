import { CaissonError } from "../../contract/error/error.ts";
import type { GroupName, Station } from "../../verbs/station.ts";
import { idsInPath, type VerbFacts } from "../../verbs/verb.ts";
import { paths } from "../../verbs/verb-facts.ts";
import { type DerivedFacts, derivableVerbs } from "../../verbs/verb-rules.ts";
import type { DerivedCalls } from "../derived-calls.ts";
import { bytesOf } from "./byte-streams.ts";

type Call = (...args: unknown[]) => unknown;

/** The derived verbs of a group on a remote station. The token identifies the caller and the owner. */
export type DerivedVerbs<Group extends GroupName> = Pick<Station[Group], keyof DerivedCalls<Group> & keyof Station[Group]>;

export function derivedVerbs<Group extends GroupName>(group: Group, calls: DerivedCalls<Group>): DerivedVerbs<Group> {
  const derived = derivableVerbs(group).map(([name, facts]) => [name, derivedVerb(facts, Reflect.get(calls as object, name) as Call)]);
  return Object.fromEntries(derived) as DerivedVerbs<Group>;
}

/** Adapts a call: separates ids, input and signal. */
function derivedVerb(facts: DerivedFacts, call: Call): Call {
  const { kind, takes, apart, lead, route } = facts;
  if (kind === "log") return call;
  if (kind === "wait") return async (...args) => await waitOrCancel(call, args);
  const leading = idsInPath(paths[route]).length + (lead === undefined ? 0 : 1);
  const split = (args: unknown[]) => {
    const [first = {}, last = {}] = args.slice(leading) as (Record<string, unknown> | undefined)[];
    const isApart = apart === true && takes === true;
    const beside = isApart ? last : first;
    // Omits the fields that the token specifies. A separate input object stays unchanged, because its fields may have
    // the same names.
    const input = isApart ? first : Object.fromEntries(Object.entries(first).filter(([field]) => !isBeside(field, facts)));
    return { ids: args.slice(0, leading), input, signal: facts.signal ? (beside.signal as AbortSignal | undefined) : undefined };
  };
  const through = (args: unknown[]) => {
    const { ids, input, signal } = split(args);
    return call(...ids, ...(takes ? [input] : []), signal ? { signal } : {});
  };
  if (kind !== "bytes") return (...args) => through(args);
  return async function* (...args) {
    yield* bytesOf((await through(args)) as ReadableStream<Uint8Array>, { what: "reading", signal: split(args).signal });
  };
}

/** Returns whether a verb takes this field in addition to its input. */
function isBeside(field: string, { by, owner, signal }: VerbFacts): boolean {
  return (field === "by" && by === true) || (field === "owner" && owner === true) || (field === "signal" && signal === true);
}

async function waitOrCancel(call: Call, args: unknown[]): Promise<unknown> {
  try {
    return await call(...args);
  } catch (error) {
    const { signal } = (args[1] ?? {}) as { signal?: AbortSignal };
    if (signal?.aborted) throw new CaissonError("cancelled", `waiting for ${args[0]} was cancelled`);
    throw error;
  }
}
