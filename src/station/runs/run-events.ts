import { readEvent } from "../../contract/event/event-family.ts";
import type { FedEvent, FedRunEvent, FedSandboxEvent } from "../../contract/feed/fed-event.ts";
import { type SandboxFacts, sandboxLogEvents } from "../../contract/sandbox/sandbox-log-event.ts";
import { createPauses } from "../../lib/pauses.ts";
import type { Log, PlacedEvent } from "../../log/log.ts";
import type { NumberedRunEvent } from "../../verbs/runs.ts";
import { fedByJob, jobPrefixes, ownerOfJob } from "../durable/fed-events.ts";
import { headOfRun } from "../vocabulary/head-of-run.ts";
import { runOf, runStream, sandboxOf, sandboxStream } from "../vocabulary/station-names.ts";
import { parseRunEvent } from "./owned-journal.ts";

/** Small, because most callers want no more than one page of a list. */
const FIRST_PAGE = 64;
const PAGE = 1000;
const PAGE_BYTES = 1024 ** 2;
const OWNERS_KNOWN_MAX = 10_000;

/** See `RunVerbs.events`. */
export async function* runEvents(
  log: Log,
  run: string,
  options: { fromSeq?: number; follow?: boolean; signal?: AbortSignal },
): AsyncGenerator<NumberedRunEvent> {
  const { fromSeq = 1, follow = false, signal } = options;
  // Works for a run with a damaged log, too: we return its readable events.
  if ((await log.lastSeq(runStream(run))) === 0) await headOfRun(log, run);
  if (!follow) {
    const pause = createPauses();
    for (let next = fromSeq, limit = FIRST_PAGE; signal?.aborted !== true; limit = Math.min(limit * 4, PAGE)) {
      const events = await log.read(runStream(run), { fromSeq: next, limit, bytesMax: PAGE_BYTES });
      for (const stored of events) {
        yield { ...parseRunEvent(stored), seq: stored.seq };
        await pause();
      }
      const last = events.at(-1);
      if (last === undefined) return;
      next = last.seq + 1;
    }
    return;
  }
  let head = await headOfRun(log, run);
  const isOverAt = (seq: number) => head.facts.status === "ended" && seq >= head.seq;
  if (isOverAt(fromSeq - 1)) return;
  for await (const stored of log.subscribe(runStream(run), { fromSeq, ...(signal && { signal }) })) {
    const event = parseRunEvent(stored);
    yield { ...event, seq: stored.seq };
    // A run can be reopened or get other labels after its end, so only its head tells whether this is the last event.
    if (event.type !== "run.ended" && !isOverAt(stored.seq)) continue;
    head = await headOfRun(log, run);
    if (isOverAt(stored.seq)) return;
  }
}

/** See `RunVerbs.allEvents`. Unreadable events of one run do not hold up the others. */
export async function* allEvents(log: Log, options: { afterPosition?: number; signal?: AbortSignal }): AsyncGenerator<FedEvent> {
  const ownerOf = ownersOfStreams(log);
  const prefix = [runStream(""), sandboxStream(""), ...jobPrefixes];
  for await (const stored of log.subscribeAll({ prefix, ...options })) {
    const { stream } = stored;
    if (stream.startsWith(runStream(""))) yield fedByRun(stored);
    else if (stream.startsWith(sandboxStream(""))) yield fedBySandbox(stored, await ownerOf(stream, ownerOfSandbox));
    else yield fedByJob(stored, await ownerOf(stream, ownerOfJob));
  }
}

function fedByRun(stored: PlacedEvent): FedRunEvent {
  const place = { run: runOf(stored.stream), seq: stored.seq, position: stored.position };
  try {
    return { ...place, event: parseRunEvent(stored), damage: null };
  } catch (error) {
    return { ...place, event: null, damage: (error as Error).message };
  }
}

function fedBySandbox(stored: PlacedEvent, owner: string | null): FedSandboxEvent {
  const place = { sandbox: sandboxOf(stored.stream), owner, seq: stored.seq, position: stored.position };
  try {
    if (stored.damage !== undefined) return { ...place, event: null, damage: stored.damage };
    return { ...place, event: readEvent(sandboxLogEvents, stored), damage: null };
  } catch (error) {
    return { ...place, event: null, damage: (error as Error).message };
  }
}

const ownerOfSandbox = (head: unknown): string | null => (head as SandboxFacts | undefined)?.life?.owner ?? null;

/** Caches the owner of each stream, which never changes once it is known. */
function ownersOfStreams(log: Log): (stream: string, ownerIn: (head: unknown) => string | null) => Promise<string | null> {
  const known = new Map<string, string>();
  return async (stream, ownerIn) => {
    const found = known.get(stream);
    if (found !== undefined) return found;
    const owner = ownerIn((await log.head(stream))?.head);
    if (known.size >= OWNERS_KNOWN_MAX) known.delete(known.keys().next().value ?? "");
    if (owner !== null) known.set(stream, owner);
    return owner;
  };
}
