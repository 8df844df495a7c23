import type { declaredVerbs } from "../verbs/declared-verbs.ts";
import type { RouteName } from "../verbs/routes.ts";
import type { GroupName } from "../verbs/station.ts";
import { type CallOf, idsInPath, takesQuery, type VerbFacts } from "../verbs/verb.ts";
import { paths } from "../verbs/verb-facts.ts";
import { derivableVerbs } from "../verbs/verb-rules.ts";
import { eventData } from "./event-stream.ts";
import { type AnyInput, type Connection, callRoute, type Signal, send, streamOf } from "./request.ts";

type Groups = typeof declaredVerbs;

/** The calls of a group that can be derived; the others are written by hand. */
export type DerivedCalls<Group extends GroupName> = {
  [Name in keyof Groups[Group] as Groups[Group][Name] extends { byHand: true } ? never : Name]: CallOf<Groups[Group][Name]>;
};

const PAGE = 1000;

/** Creates one call for each derived verb of a group. */
export function derivedCalls<Group extends GroupName>(to: Connection, group: Group): DerivedCalls<Group> {
  const derived = derivableVerbs(group).map(([name, facts]) => [name, derivedCall(to, facts.route, facts)]);
  return Object.fromEntries(derived) as DerivedCalls<Group>;
}

function derivedCall(to: Connection, route: RouteName, facts: VerbFacts): (...args: unknown[]) => unknown {
  const path = paths[route];
  const place = { ids: idsInPath(path), isQuery: takesQuery(path) };
  const input = (args: readonly unknown[]) => inputOf(args, facts, place);
  if (facts.kind === "log") return (...args) => followLog(to, route, input(args));
  if (facts.kind === "wait") return (...args) => waitFor(to, route, input(args));
  if (facts.kind === "items") return (...args) => eventData(to, route, { input: input(args), resume: false });
  if (facts.kind === "bytes") return async (...args) => streamOf(await send(to, route, { input: input(args), accept: "*/*" }));
  const { key } = facts;
  if (key === undefined) return (...args) => callRoute(to, route, input(args));
  return async (...args) => ((await callRoute(to, route, input(args))) as Record<string, unknown>)[key];
}

/**
 * Splits the arguments: the ids, then the input, then the options. A log and a wait have input and options in one
 * object.
 */
function inputOf(args: readonly unknown[], { lead, takes, kind }: VerbFacts, place: { ids: string[]; isQuery: boolean }): AnyInput {
  const rest = [...args];
  const params = Object.fromEntries(place.ids.map((id) => [id, rest.shift() as string]));
  const first = lead === undefined ? {} : { [lead]: rest.shift() };
  const isTogether = kind === "log" || kind === "wait";
  const hasInput = isTogether || takes || lead !== undefined;
  const more = isTogether || takes ? (rest.shift() as object | undefined) : undefined;
  const input = (hasInput ? { ...first, ...more } : undefined) as Signal | undefined;
  const { signal, ...fields } = isTogether ? (input as Signal) : { ...input, signal: (rest.shift() as Signal | undefined)?.signal };
  return {
    ...(place.ids.length > 0 && { params }),
    ...(input !== undefined && (place.isQuery ? { query: fields } : { body: fields })),
    ...(signal && { signal }),
  };
}

/** Yields the events from a number on, each once. With `follow`, also new ones, reconnecting as often as necessary. */
function followLog(to: Connection, route: RouteName, { query, ...input }: AnyInput): AsyncIterable<unknown> {
  const { fromSeq, follow = false } = query as { fromSeq?: number; follow?: boolean };
  if (!follow) return pagesOf(to, route, { ...input, fromSeq: fromSeq ?? 1 });
  return eventData(to, route, { input: { ...input, query: fromSeq === undefined ? {} : { fromSeq } }, resume: true });
}

async function* pagesOf(to: Connection, route: RouteName, { fromSeq, ...input }: AnyInput & { fromSeq: number }) {
  for (let next: number | null = fromSeq; next !== null; ) {
    const query = { fromSeq: next, limit: PAGE };
    const page = (await callRoute(to, route, { ...input, query })) as { events: unknown[]; next: number | null };
    yield* page.events;
    next = page.next;
  }
}

type Waited = { [Group in GroupName]: Groups[Group] extends { wait: { kind: "wait" } } ? Group : never }[GroupName];
type View<Group extends Waited> = Awaited<ReturnType<CallOf<Groups[Group]["wait"]>>>;

/** Whether a wait is over: if a request takes too long, the station answers with the current state. */
const isOver: { [Group in Waited]: (view: View<Group>, orPerson: boolean) => boolean } = {
  runs: ({ finish }) => finish !== null,
  specs: ({ status }) => status !== "running" && status !== "retrying",
  ships: ({ status, asks }, orPerson) => status === "merged" || status === "cancelled" || (orPerson && asks !== null),
  merges: isJobOver,
  bests: isJobOver,
  workflows: isJobOver,
};

function isJobOver({ finish, waits }: { finish: unknown; waits: { person: string | null } | null }, orPerson: boolean): boolean {
  return finish !== null || (orPerson && (waits?.person ?? null) !== null);
}

async function waitFor(to: Connection, route: RouteName, input: AnyInput): Promise<unknown> {
  const isDone = isOver[route.split(".")[0] as Waited] as (view: unknown, orPerson: boolean) => boolean;
  const { orPerson = false } = input.query as { orPerson?: boolean };
  for (;;) {
    const view = await callRoute(to, route, input);
    if (isDone(view, orPerson)) return view;
  }
}
