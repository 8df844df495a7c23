import { applyToDrivenFacts, type DrivenFacts, emptyDrivenFacts } from "../../contract/driven.ts";
import type { NewDrivenEvent } from "../../contract/driven-event.ts";
import { CaissonError } from "../../contract/error.ts";
import { makeEvent, readEvent } from "../../contract/event-family.ts";
import { duringTurn } from "../../lib/turns.ts";
import type { Log, NewEvent, StoredEvent, StreamHead } from "../../log/log.ts";
import { readPages } from "../../log/read-pages.ts";
import type { Kind, NewKindEvent, ReadKindEvent } from "./kind.ts";

/** Somebody at work appends some times a second; losing this many races in a row means something is wrong. */
const RACES_MAX = 1000;

export const streamOf = (kind: Pick<Kind, "prefix">, id: string): string => `${kind.prefix}${id}`;

type HeadedKind = Pick<Kind, "name" | "prefix" | "listedBy">;
/** A kind, as far as its things are read and said something to. */
export type FoldedKind<State> = HeadedKind & Pick<Kind<State>, "events" | "empty" | "apply">;

/** A thing as its events up to a number make it. */
export interface Folded<State> {
  state: State;
  facts: DrivenFacts;
  seq: number;
}

export function emptyFold<State>(kind: FoldedKind<State>): Folded<State> {
  return { state: kind.empty(), facts: emptyDrivenFacts(), seq: 0 };
}

/**
 * Folds what has been appended since. Throws `internal` for an event that this Caisson does not understand, and says so
 * with the head.
 */
export async function foldOn<State>(log: Log, kind: FoldedKind<State>, id: string, folded: Folded<State>): Promise<void> {
  for await (const events of readPages(log, streamOf(kind, id), { fromSeq: folded.seq + 1 })) {
    const failed = duringTurn({ stream: streamOf(kind, id), seq: folded.seq }, () => foldPage(kind, events, folded));
    if (failed !== null) {
      await log.noteDamage(streamOf(kind, id), failed.message).catch(() => undefined);
      throw failed;
    }
  }
}

/** A thing from its first event on. Throws `not_found`, and what `foldOn` throws. */
export async function foldThing<State>(log: Log, kind: FoldedKind<State>, id: string): Promise<Folded<State>> {
  const folded = emptyFold(kind);
  await foldOn(log, kind, id, folded);
  if (folded.seq === 0) throw noSuchThing(kind, id);
  return folded;
}

/** What is wrong with an event that cannot be read; null when all are folded. */
function foldPage<State>(kind: FoldedKind<State>, events: readonly StoredEvent[], folded: Folded<State>): Error | null {
  for (const stored of events) {
    let event: ReadKindEvent;
    try {
      event = readEvent(kind.events, stored) as ReadKindEvent;
    } catch (error) {
      return error as Error;
    }
    applyToDrivenFacts(folded.facts, event);
    kind.apply(folded.state, event);
    folded.seq = stored.seq;
  }
  return null;
}

/** As the log takes them. Throws `internal` for one that is not of the kind's family: it could never be read again. */
export function storedForm(kind: Pick<Kind, "events" | "name">, events: readonly (NewKindEvent | NewDrivenEvent)[]): NewEvent[] {
  return events.map((event) => {
    if (!kind.events.byType.has(event.type)) throw new CaissonError("internal", `a ${kind.name} has no event ${event.type}`);
    const { type, version, data } = makeEvent(kind.events, event as never) as unknown as NewEvent;
    return { type, version, data };
  });
}

export interface DrivenHead {
  facts: DrivenFacts;
  seq: number;
  at: string;
  damage: string | null;
}

/** What the log keeps beside the events; nothing is folded. Throws `not_found`. */
export async function headOf(log: Log, kind: HeadedKind, id: string): Promise<DrivenHead> {
  const head = await log.head(streamOf(kind, id));
  if (head === null) throw noSuchThing(kind, id);
  return toDrivenHead(kind, head);
}

export function toDrivenHead(kind: Pick<Kind, "prefix">, { stream, seq, at, damage, head }: StreamHead): DrivenHead {
  // The first event may be the damaged one.
  return { facts: { ...(head as unknown as DrivenFacts), id: stream.slice(kind.prefix.length) }, seq, at, damage };
}

export function noSuchThing({ name, listedBy }: Pick<Kind, "name" | "listedBy">, word: string): CaissonError {
  return new CaissonError("not_found", `there is no ${name} ${word}`, { hint: `\`${listedBy}\` lists them.` });
}

/**
 * Adds what somebody who does not drive a thing says to it: a person, another process, another thing. `make` looks at
 * it as it is and gives the events, or none when there is nothing to say; they are appended only where that look is
 * still true, and made again otherwise. So of two answers one counts, and the other is refused by `make`.
 */
export async function say<State>(
  log: Log,
  kind: FoldedKind<State>,
  id: string,
  make: (thing: Folded<State>) => readonly (NewKindEvent | NewDrivenEvent)[],
): Promise<void> {
  const folded = await foldThing(log, kind, id);
  for (let races = 0; ; races++) {
    const events = make(folded);
    if (events.length === 0) return;
    try {
      await log.append(streamOf(kind, id), storedForm(kind, events), { expectedSeq: folded.seq });
      return;
    } catch (error) {
      if (!(error instanceof CaissonError) || error.code !== "conflict" || races >= RACES_MAX) throw error;
      await foldOn(log, kind, id, folded);
    }
  }
}
