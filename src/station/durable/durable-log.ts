import type { NewJobEvent } from "../../contract/durable/durable-event.ts";
import { applyToJobFacts, emptyJobFacts, type JobFacts } from "../../contract/durable/durable-job.ts";
import { CaissonError } from "../../contract/error/error.ts";
import { makeEvent, readEvent } from "../../contract/event/event-family.ts";
import { ignore } from "../../lib/failures.ts";
import { duringTurn } from "../../lib/turns.ts";
import type { Log, NewEvent, StoredEvent, StreamHead } from "../../log/log.ts";
import { readPages } from "../../log/read-pages.ts";
import type { Kind, NewKindEvent, ReadKindEvent } from "./kind.ts";

/** A busy writer appends a few times a second; losing this many races in a row means that something is wrong. */
const RACES_MAX = 1000;

export const streamOf = (kind: Pick<Kind, "prefix">, id: string): string => `${kind.prefix}${id}`;

type HeadedKind = Pick<Kind, "name" | "prefix" | "listedBy">;
/** The part of a kind that is needed to read its jobs and append to them. */
export type FoldedKind<State> = HeadedKind & Pick<Kind<State>, "events" | "empty" | "apply">;

/** A job, folded from its events up to a number. */
export interface Folded<State> {
  state: State;
  facts: JobFacts;
  seq: number;
}

export function emptyFold<State>(kind: FoldedKind<State>): Folded<State> {
  return { state: kind.empty(), facts: emptyJobFacts(), seq: 0 };
}

/**
 * Folds the events appended since. Throws `internal` for an event that this version of Caisson cannot read, and notes
 * the damage with the head.
 */
export async function foldOn<State>(log: Log, kind: FoldedKind<State>, id: string, folded: Folded<State>): Promise<void> {
  for await (const events of readPages(log, streamOf(kind, id), { fromSeq: folded.seq + 1 })) {
    const failed = duringTurn({ stream: streamOf(kind, id), seq: folded.seq }, () => foldPage(kind, events, folded));
    if (failed !== null) {
      await ignore(log.noteDamage(streamOf(kind, id), failed.message), "the failure itself is thrown");
      throw failed;
    }
  }
}

/** Folds a job from its first event. Throws `not_found`, and what `foldOn` throws. */
export async function foldJob<State>(log: Log, kind: FoldedKind<State>, id: string): Promise<Folded<State>> {
  const folded = emptyFold(kind);
  await foldOn(log, kind, id, folded);
  if (folded.seq === 0) throw noSuchJob(kind, id);
  return folded;
}

/** Folds a page of events. Returns the error for an unreadable event, or null if all events were folded. */
function foldPage<State>(kind: FoldedKind<State>, events: readonly StoredEvent[], folded: Folded<State>): Error | null {
  for (const stored of events) {
    let event: ReadKindEvent;
    try {
      event = readEvent(kind.events, stored) as ReadKindEvent;
    } catch (error) {
      return error as Error;
    }
    applyToJobFacts(folded.facts, event);
    kind.apply(folded.state, event);
    folded.seq = stored.seq;
  }
  return null;
}

/**
 * Returns the events in the log's form. Throws `internal` for an event outside the kind's family, because no reader
 * could parse it.
 */
export function storedForm(kind: Pick<Kind, "events" | "name">, events: readonly (NewKindEvent | NewJobEvent)[]): NewEvent[] {
  return events.map((event) => {
    if (!kind.events.byType.has(event.type)) throw new CaissonError("internal", `a ${kind.name} has no event ${event.type}`);
    const { type, version, data } = makeEvent(kind.events, event as never) as unknown as NewEvent;
    return { type, version, data };
  });
}

export interface JobHead {
  facts: JobFacts;
  seq: number;
  at: string;
  damage: string | null;
}

/** Returns what the log stores beside the events, without folding. Throws `not_found`. */
export async function headOf(log: Log, kind: HeadedKind, id: string): Promise<JobHead> {
  const head = await log.head(streamOf(kind, id));
  if (head === null) throw noSuchJob(kind, id);
  return toJobHead(kind, head);
}

export function toJobHead(kind: Pick<Kind, "prefix">, { stream, seq, at, damage, head }: StreamHead): JobHead {
  // The first event, which has the id, may be the damaged one.
  return { facts: { ...(head as unknown as JobFacts), id: stream.slice(kind.prefix.length) }, seq, at, damage };
}

export function noSuchJob({ name, listedBy }: Pick<Kind, "name" | "listedBy">, word: string): CaissonError {
  return new CaissonError("not_found", `there is no ${name} ${word}`, { hint: `\`${listedBy}\` lists them.` });
}

/**
 * Appends events that do not come from the driver, but from a person, another process or another job. `make` receives
 * the current job and returns the events, or an empty list. We append them only if the job has not changed since;
 * otherwise we call `make` again. So if two answers arrive at once, one counts and `make` refuses the other.
 */
export async function say<State>(
  log: Log,
  kind: FoldedKind<State>,
  id: string,
  make: (job: Folded<State>) => readonly (NewKindEvent | NewJobEvent)[],
): Promise<void> {
  const folded = await foldJob(log, kind, id);
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
