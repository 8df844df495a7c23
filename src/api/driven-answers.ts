import { CaissonError } from "../contract/error.ts";
import { sequenceOf } from "./last-event-id.ts";
import { type Numbered, numbered, pageOf } from "./numbered-events.ts";

interface Followed<Event extends Numbered> {
  get(word: string): Promise<{ id: string }>;
  events(word: string, options: { fromSeq: number; follow: boolean; signal: AbortSignal }): AsyncIterable<Event>;
}

interface EventsCall {
  query: { fromSeq?: number | undefined; limit: number };
  wants: "json" | "events";
  lastEventId: string | null;
  signal: AbortSignal;
}

/** The events of a driven thing, as the caller wants them: a page, or all there are and those to come. */
export async function eventsOfDriven<Event extends Numbered>(
  verbs: Followed<Event>,
  word: string,
  { query, wants, lastEventId, signal }: EventsCall,
) {
  const { fromSeq = 1, limit } = query;
  if (wants === "json") return { json: await pageOf(verbs.events(word, { fromSeq, follow: false, signal }), limit) };
  // One that does not exist is no stream.
  const { id } = await verbs.get(word);
  const from = lastEventId === null ? fromSeq : sequenceOf(lastEventId) + 1;
  return { events: numbered(verbs.events(id, { fromSeq: from, follow: true, signal })) };
}

interface Waited<View> {
  get(word: string): Promise<View>;
  wait(word: string, options: { orPerson: boolean; signal: AbortSignal }): Promise<View>;
}

/** A driven thing once it is over, or waits for a person; as it is when that takes longer. */
export async function overOrAsItIs<View>(
  verbs: Waited<View>,
  word: string,
  { timeoutMs, orPerson = false, signal }: { timeoutMs: number; orPerson?: boolean | undefined; signal: AbortSignal },
): Promise<View> {
  const late = AbortSignal.timeout(timeoutMs);
  try {
    return await verbs.wait(word, { orPerson, signal: AbortSignal.any([signal, late]) });
  } catch (error) {
    const isLate = late.aborted && !signal.aborted && error instanceof CaissonError && error.code === "cancelled";
    if (!isLate) throw error;
    return await verbs.get(word);
  }
}
