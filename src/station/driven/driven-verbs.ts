import type { DrivenFacts, DrivenList, DrivenView } from "../../contract/driven.ts";
import { ListDriven } from "../../contract/driven.ts";
import type { NewDrivenEvent } from "../../contract/driven-event.ts";
import { CaissonError } from "../../contract/error.ts";
import { readEvent } from "../../contract/event-family.ts";
import { LOCAL_OWNER, ownedBy } from "../../contract/owner.ts";
import { parseRequest } from "../../contract/parse-request.ts";
import { defined } from "../../lib/defined.ts";
import { newId } from "../../lib/new-id.ts";
import type { Log } from "../../log/log.ts";
import type { Crashpoint } from "../crashpoint.ts";
import { oneOf } from "../names/one-of.ts";
import { parseCursor, showCursor } from "../pages.ts";
import { type DrivenHead, type Folded, foldThing, headOf, say, storedForm, streamOf, toDrivenHead } from "./driven-log.ts";
import type { Driver } from "./driver.ts";
import type { Effect, Kind, NewKindEvent } from "./kind.ts";
import type { DrivenVerbs } from "./verbs.ts";

const PAGE = 1000;
const PAGE_BYTES = 1024 ** 2;
const LIST_DEFAULT = 1000;
/** More than an error names. */
const CANDIDATES_MAX = 100;
const TITLE_MAX = 200;
/** Unless the configuration says otherwise. */
const OPEN_PER_OWNER_MAX = 200;

/** A thing that is about to be made. */
export interface NewThing<New extends NewKindEvent> {
  /** Given by whoever has to find it again after a crash; one that is there already is left as it is. */
  id?: string;
  title: string;
  owner?: string | undefined;
  /** The stream of the thing that it is a part of. */
  parent?: string | null;
  /** What it is: the kind's own first events. */
  events: readonly New[];
}

/** The verbs that all kinds share, and what a kind makes its own verbs of. */
export interface DrivenThings<State, New extends NewKindEvent> extends DrivenVerbs {
  /** Makes a thing and begins to drive it. Resolves with its id once it is in the log. */
  start(thing: NewThing<New>): Promise<string>;
  /** The id that a word stands for. */
  find(word: string): Promise<string>;
  /** With `matches`, only those of which it says so; nothing is folded for it. */
  list(options?: ListDriven, matches?: (facts: DrivenFacts) => boolean): Promise<DrivenList>;
  /** Its whole state. */
  fold(word: string): Promise<Folded<State>>;
  /**
   * Says something to it; see `say` in `driven-log.ts`. It does not begin to drive it here: whoever drives it hears of
   * it.
   */
  say(word: string, make: (thing: Folded<State>) => readonly (New | NewDrivenEvent)[]): Promise<DrivenView>;
  /** From now on this process drives it, where no other does. */
  drive(id: string): void;
}

export function createDrivenThings<State, New extends NewKindEvent, Work extends Effect>(
  kind: Kind<State, New, Work>,
  options: {
    log: Log;
    driver: Pick<Driver, "drive">;
    crashpoint: Crashpoint;
    /** Of this kind, that are not over and no part of another. */
    openPerOwnerMax?: number | undefined;
  },
): DrivenThings<State, New> {
  const { log, driver, crashpoint, openPerOwnerMax = OPEN_PER_OWNER_MAX } = options;
  const find = (word: string) => findThing(kind, word, log);
  const view = async (id: string): Promise<DrivenView> => viewOf(await headOf(log, kind, id));
  const tell = async (word: string, make: (thing: Folded<State>) => readonly (New | NewDrivenEvent)[]): Promise<DrivenView> => {
    const id = await find(word);
    await say(log, kind, id, make);
    return await view(id);
  };
  const drive = (id: string) => driver.drive(streamOf(kind, id));
  return {
    find,
    drive,
    say: tell,
    fold: async (word) => await foldThing(log, kind, await find(word)),
    async start({ id = newId(kind.idPrefix), title, owner, parent = null, events }) {
      const created = { type: "driven.created" as const, data: { id, title: firstWords(title), parent, ...ownedBy(owner) } };
      const stored = storedForm(kind, [created, ...events]);
      if (parent === null) await checkShare(kind, id, { log, owner: owner ?? LOCAL_OWNER, openPerOwnerMax });
      crashpoint("driven.created:before");
      await log.append(streamOf(kind, id), stored, { expectedSeq: 0 }).catch(unlessThere);
      crashpoint("driven.created:after");
      drive(id);
      return id;
    },
    get: async (word) => await view(await find(word)),
    list: async (options = {}, matches) =>
      await listThings(kind, parseRequest(ListDriven, options, `a list of ${kind.name}s`), { log, matches }),
    async *events(word, options = {}) {
      yield* eventsOf(kind, await find(word), { ...options, log });
    },
    async wait(word, options = {}) {
      const id = await find(word);
      return viewOf(await untilOver(kind, id, { ...options, log }));
    },
    async cancel(word, { by, text = "" }) {
      const asked = await tell(word, ({ facts }) => {
        refuseEnded(kind, facts);
        return facts.cancelRequested === null ? [{ type: "driven.cancel_requested", data: { by, text } }] : [];
      });
      drive(asked.id);
      return asked;
    },
    pause: async (word, { by, text = "" }) =>
      await tell(word, ({ facts }) => {
        refuseEnded(kind, facts);
        return facts.paused === null ? [{ type: "driven.paused", data: { by, text } }] : [];
      }),
    async resume(word, { by }) {
      const resumed = await tell(word, ({ facts }) => {
        refuseEnded(kind, facts);
        return facts.paused === null ? [] : [{ type: "driven.continued", data: { by } }];
      });
      drive(resumed.id);
      return resumed;
    },
    async remove(word) {
      const id = await find(word);
      const { facts, damage } = await headOf(log, kind, id);
      if (facts.finish === null && damage === null) {
        throw new CaissonError("conflict", `the ${kind.name} ${id} is not over`, {
          hint: `Cancel it first: caisson ${kind.name} cancel ${id}`,
        });
      }
      await log.remove(streamOf(kind, id));
    },
  };
}

function viewOf({ facts, seq, at, damage }: DrivenHead): DrivenView {
  return { ...facts, seq, updatedAt: at, damage };
}

/** Throws `conflict` for a thing that is over. */
export function refuseEnded({ name }: Pick<Kind, "name">, { id, finish }: DrivenFacts): void {
  if (finish === null) return;
  throw new CaissonError("conflict", `the ${name} ${id} has ended (${finish})`, {
    hint: `\`caisson ${name} show ${id}\` tells how.`,
    details: { finish },
  });
}

/** The thing that a word stands for: its id, or the beginning of it. A whole id is not looked for. */
async function findThing(kind: Pick<Kind, "name" | "prefix" | "idPrefix" | "listedBy">, word: string, log: Log): Promise<string> {
  const { name, prefix, idPrefix, listedBy } = kind;
  if (new RegExp(`^${idPrefix}_[a-z2-7]{12}$`).test(word)) return word;
  if (!new RegExp(`^${idPrefix}_[a-z2-7]{1,11}$`).test(word)) {
    throw new CaissonError("invalid", `${JSON.stringify(word.slice(0, 100))} is not the id of a ${name}`, {
      hint: `An id looks like ${idPrefix}_k3v7q2m5x4ab, and its beginning is enough; \`${listedBy}\` lists them.`,
    });
  }
  const found = await log.streams({ prefix: `${prefix}${word}`, limit: CANDIDATES_MAX });
  return oneOf(
    word,
    found.map(({ stream }) => ({ id: stream.slice(prefix.length) })),
    { what: name, listedBy },
  );
}

/** Throws `busy` for an owner who has as many open things of a kind as one may have. One that exists already stays. */
async function checkShare(
  kind: Pick<Kind, "name" | "prefix" | "listedBy">,
  id: string,
  { log, owner, openPerOwnerMax }: { log: Log; owner: string; openPerOwnerMax: number },
): Promise<void> {
  const { heads } = await log.heads({ prefix: kind.prefix, where: { owner: [owner] }, open: true, limit: openPerOwnerMax });
  if (heads.length < openPerOwnerMax || heads.some(({ stream }) => stream === streamOf(kind, id))) return;
  const isOwn = ({ head }: { head: unknown }) => (head as DrivenFacts).parent === null;
  if (heads.filter(isOwn).length < openPerOwnerMax) return;
  throw new CaissonError("busy", `${owner} has ${openPerOwnerMax} ${kind.name}s that are not over, as many as one owner may have`, {
    hint: `Wait for some to end, or cancel them; \`${kind.listedBy}\` lists them. \`station.jobsPerOwnerMax\` is the bound.`,
  });
}

async function listThings(
  kind: Pick<Kind, "prefix" | "name">,
  asked: ListDriven,
  { log, matches }: { log: Log; matches: ((facts: DrivenFacts) => boolean) | undefined },
): Promise<DrivenList> {
  const { id = "", state, status, finish, parent, owner, needsPerson, cursor, limit = LIST_DEFAULT } = asked;
  const where = defined({
    status: status === undefined ? undefined : [status],
    finish: finish === undefined ? undefined : [finish],
    owner: owner === undefined ? undefined : [owner],
    parent: parent === undefined ? undefined : [parent],
  });
  const [at, stream] = cursor === undefined ? [] : parseCursor(cursor, `${kind.name}s`);
  const isAsked = (head: unknown) => {
    const facts = head as DrivenFacts;
    return (needsPerson === undefined || ((facts.waits?.person ?? null) !== null) === needsPerson) && matches?.(facts) !== false;
  };
  const isAnyAsked = needsPerson !== undefined || matches !== undefined;
  const { heads, total, isMinimum } = await log.heads({
    prefix: `${kind.prefix}${id}`,
    where,
    limit,
    ...defined({ open: state === undefined ? undefined : state === "open", matches: isAnyAsked ? isAsked : undefined }),
    ...(at !== undefined && stream !== undefined && { after: { at, stream } }),
  });
  const last = heads.at(-1);
  return {
    items: heads.map((head) => viewOf(toDrivenHead(kind, head))),
    total,
    totalIsMinimum: isMinimum,
    next: last !== undefined && heads.length === limit ? showCursor([last.at, last.stream]) : null,
  };
}

async function* eventsOf(
  kind: Pick<Kind, "name" | "prefix" | "events" | "listedBy">,
  id: string,
  { log, fromSeq = 1, follow = false, signal }: { log: Log; fromSeq?: number; follow?: boolean; signal?: AbortSignal },
) {
  const stream = streamOf(kind, id);
  await headOf(log, kind, id);
  const read = (stored: Parameters<typeof readEvent>[1] & { seq: number }) => ({
    ...(readEvent(kind.events, stored) as { type: string; at: string; data: unknown }),
    seq: stored.seq,
  });
  if (!follow) {
    for (let next = fromSeq; signal?.aborted !== true; ) {
      const events = await log.read(stream, { fromSeq: next, limit: PAGE, bytesMax: PAGE_BYTES });
      for (const stored of events) yield read(stored);
      const last = events.at(-1);
      if (last === undefined) return;
      next = last.seq + 1;
    }
    return;
  }
  const { facts, seq } = await headOf(log, kind, id);
  if (facts.finish !== null && fromSeq > seq) return;
  for await (const stored of log.subscribe(stream, { fromSeq, ...(signal && { signal }) })) {
    yield read(stored);
    // Unless somebody let it go on: nothing else comes after an end.
    if (stored.type === "driven.ended" && (await log.lastSeq(stream)) === stored.seq) return;
  }
}

async function untilOver(
  kind: Pick<Kind, "name" | "prefix" | "listedBy">,
  id: string,
  { log, orPerson = false, signal }: { log: Log; orPerson?: boolean; signal?: AbortSignal },
): Promise<DrivenHead> {
  const isOver = ({ facts }: DrivenHead) => facts.finish !== null || (orPerson && (facts.waits?.person ?? null) !== null);
  const first = await headOf(log, kind, id);
  if (isOver(first)) return first;
  for await (const _ of log.subscribe(streamOf(kind, id), { fromSeq: first.seq + 1, ...(signal && { signal }) })) {
    const now = await headOf(log, kind, id);
    if (isOver(now)) return now;
  }
  throw new CaissonError("cancelled", `waiting for ${id} was given up`);
}

/** One that was made before, by the same id, is the same thing. */
function unlessThere(error: unknown): void {
  if (!(error instanceof CaissonError) || error.code !== "conflict") throw error;
}

function firstWords(text: string): string {
  const line = text.trim().split("\n", 1)[0] ?? "";
  return line.length <= TITLE_MAX ? line : `${line.slice(0, TITLE_MAX - 1)}…`;
}
