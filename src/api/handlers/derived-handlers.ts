import { CaissonError } from "../../contract/error/error.ts";
import { defined } from "../../lib/defined.ts";
import type { declaredVerbs } from "../../verbs/declared-verbs.ts";
import type { RouteName } from "../../verbs/routes.ts";
import type { GroupName } from "../../verbs/station.ts";
import { idsInPath, takesQuery, type VerbFacts } from "../../verbs/verb.ts";
import { paths, verbFacts } from "../../verbs/verb-facts.ts";
import { type DerivedFacts, derivableVerbs } from "../../verbs/verb-rules.ts";
import { type Call, type Handlers, nothing, type Reply } from "../call.ts";
import { type Numbered, pageOf, withEventIds } from "../event-ids.ts";
import { sequenceOf } from "../last-event-id.ts";
import { startStream } from "../start-stream.ts";

type Groups = typeof declaredVerbs;
type DerivedRoute = {
  [Group in GroupName]: {
    [Name in keyof Groups[Group] & string]: Groups[Group][Name] extends { byHand: true }
      ? never
      : Groups[Group][Name] extends { route: infer Route extends string }
        ? Route
        : `${Group}.${Name}`;
  }[keyof Groups[Group] & string];
}[GroupName] &
  RouteName;
type AnyReply = Reply<RouteName>;

/** Derives the handler of each verb that follows the rule. The other handlers are written by hand. */
export function derivedHandlers(): Handlers<DerivedRoute> {
  const handlers = (Object.keys(verbFacts) as GroupName[]).flatMap((group) =>
    derivableVerbs(group).map(([name, facts]) => [facts.route, handlerOf(group, name, facts)]),
  );
  return Object.fromEntries(handlers) as Handlers<DerivedRoute>;
}

type AnyCall = Call<RouteName>;
type Verb = (...args: unknown[]) => unknown;

function handlerOf(group: GroupName, name: string, facts: DerivedFacts): (call: AnyCall) => Promise<AnyReply> {
  const path = paths[facts.route];
  const ids = idsInPath(path);
  const isQuery = takesQuery(path);
  const verbOf = ({ station }: AnyCall, verb: string) => Reflect.get(station[group], verb) as Verb;
  const idsOf = ({ params }: AnyCall) => ids.map((id) => (params as Record<string, string>)[id]);
  if (facts.kind === "log") {
    return async (call) => await answerLog(call, (options) => verbOf(call, name)(...idsOf(call), options) as AsyncIterable<Numbered>);
  }
  if (facts.kind === "wait") {
    return async (call) => {
      const wait = (options: object) => verbOf(call, name)(...idsOf(call), options) as Promise<never>;
      return { json: await overOrAsItIs(call, wait, () => verbOf(call, "get")(...idsOf(call)) as Promise<never>) };
    };
  }
  return async (call) => {
    const result = verbOf(call, name)(...idsOf(call), ...argumentsOf(call, isQuery ? call.query : call.body, facts));
    if (facts.kind === "bytes") return { bytes: await startStream(result as AsyncIterable<Uint8Array>) };
    if (facts.kind === "items") return { events: byField(await startStream(result as AsyncIterable<object>)) };
    const output = await result;
    if (output === undefined) return nothing;
    return { json: (facts.key === undefined ? output : { [facts.key]: output }) as never };
  };
}

/** Returns a verb's arguments after its ids, as it declares them. */
function argumentsOf({ by, signal, owner }: AnyCall, input: object | undefined, facts: VerbFacts): unknown[] {
  const { [facts.lead ?? ""]: lead, ...fields } = defined(input ?? {}) as Record<string, unknown>;
  const beside = { ...(facts.by && { by }), ...(facts.signal && { signal }), ...(facts.owner && { owner }) };
  const leading = facts.lead === undefined ? [] : [lead];
  return facts.apart && facts.takes ? [...leading, fields, beside] : [...leading, { ...fields, ...beside }];
}

/**
 * Answers with a page or, if the caller wants a stream, with all events and then new ones. Sends the readable part of a
 * damaged log.
 */
async function answerLog(
  call: AnyCall,
  events: (options: { fromSeq: number; follow: boolean; signal: AbortSignal }) => AsyncIterable<Numbered>,
): Promise<AnyReply> {
  const { query, wants, lastEventId, signal } = call;
  const { fromSeq = 1, limit } = query as unknown as { fromSeq?: number; limit: number };
  if (wants === "json") return { json: (await pageOf(events({ fromSeq, follow: false, signal }), limit)) as never };
  const from = lastEventId === null ? fromSeq : sequenceOf(lastEventId) + 1;
  // Fails before the stream starts if the log does not exist.
  for await (const _event of events({ fromSeq: from, follow: false, signal })) break;
  return { events: withEventIds(events({ fromSeq: from, follow: true, signal })) as never };
}

/** Waits for the end, and returns the current state if that takes longer than the request allows. */
async function overOrAsItIs(
  { query, signal }: AnyCall,
  wait: (options: object) => Promise<never>,
  get: () => Promise<never>,
): Promise<never> {
  const { timeoutMs, ...options } = query as unknown as { timeoutMs: number };
  const late = AbortSignal.timeout(timeoutMs);
  try {
    return await wait({ ...defined(options), signal: AbortSignal.any([signal, late]) });
  } catch (error) {
    const isLate = late.aborted && !signal.aborted && error instanceof CaissonError && error.code === "cancelled";
    if (!isLate) throw error;
    return await get();
  }
}

/** Turns items with one field into events that have the field's name as their type. */
async function* byField<Item extends object>(items: AsyncIterable<Item>) {
  for await (const item of items) yield { type: Object.keys(item)[0] as string, data: item as never };
}
