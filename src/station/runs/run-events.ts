import { readEvent } from "../../contract/event-family.ts";
import type { FedEvent, FedRunEvent, FedSandboxEvent } from "../../contract/run-verbs.ts";
import { type SandboxFacts, sandboxLogEvents } from "../../contract/sandbox-log-event.ts";
import { createPauses } from "../../lib/pauses.ts";
import type { Log, PlacedEvent } from "../../log/log.ts";
import { drivenPrefixes, fedByDriven, ownerOfDriven } from "../driven/fed-events.ts";
import { sandboxOf, sandboxStream } from "../health/health-log.ts";
import { headOfRun, runOf, runStream } from "./head-of-run.ts";
import { parseRunEvent } from "./owned-journal.ts";
import type { NumberedRunEvent } from "./verbs.ts";

/** Most who ask for some want no more than a page of a list. */
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
  // Also of a run whose log is damaged: what can be read of it is given.
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
  // Whoever has its end already is told nothing more.
  if (await isOverAt(log, run, fromSeq - 1)) return;
  for await (const stored of log.subscribe(runStream(run), { fromSeq, ...(signal && { signal }) })) {
    const event = parseRunEvent(stored);
    yield { ...event, seq: stored.seq };
    // Unless somebody let it go on: nothing else comes after an end but other labels.
    if (event.type !== "run.ended" && event.type !== "run.labelled") continue;
    if (await isOverAt(log, run, stored.seq)) return;
  }
}

/** Whether the run has ended, and nothing came after this event. */
async function isOverAt(log: Log, run: string, seq: number): Promise<boolean> {
  const head = await headOfRun(log, run);
  return head.facts.status === "ended" && seq >= head.seq;
}

/** See `RunVerbs.allEvents`. What cannot be read of one run does not keep anybody from the others. */
export async function* allEvents(log: Log, options: { afterPosition?: number; signal?: AbortSignal }): AsyncGenerator<FedEvent> {
  const ownerOf = ownersOfStreams(log);
  const prefix = [runStream(""), sandboxStream(""), ...drivenPrefixes];
  for await (const stored of log.subscribeAll({ prefix, ...options })) {
    const { stream } = stored;
    if (stream.startsWith(runStream(""))) yield fedByRun(stored);
    else if (stream.startsWith(sandboxStream(""))) yield fedBySandbox(stored, await ownerOf(stream, ownerOfSandbox));
    else yield fedByDriven(stored, await ownerOf(stream, ownerOfDriven));
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

/** Whose a thing is does not change once it is known. */
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
