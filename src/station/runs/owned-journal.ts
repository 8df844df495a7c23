import { EventEmitter, once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { type Journal, letGoError } from "../../agent/journal.ts";
import { applyEvent, emptyRunState, type RunState } from "../../agent/run-state.ts";
import { CaissonError } from "../../contract/error.ts";
import { makeEvent, readEvent } from "../../contract/event-family.ts";
import { measuredTypes, type NewRunEvent, type RunEvent, runEvents } from "../../contract/run-event.ts";
import type { Lease, Log, StoredEvent } from "../../log/log.ts";
import { readPages } from "../../log/read-pages.ts";
import type { Crashpoint } from "../crashpoint.ts";
import { runStream } from "./head-of-run.ts";

/** Others append rarely; losing this many races in a row means something is wrong. */
const RACES_MAX = 100;
const WATCH_AGAIN_MS = 1_000;

/**
 * Reads a run's events and folds them. Throws `not_found` for a run that is not there, `internal` for an event that
 * this Caisson does not understand.
 */
export async function foldRun(
  log: Log,
  run: string,
  options: { events?: typeof runEvents } = {},
): Promise<{ state: RunState; seq: number }> {
  const state = emptyRunState();
  const seq = await foldFrom(log, run, { state, seq: 0 }, options);
  if (seq === 0) throw new CaissonError("not_found", `there is no run ${run}`, { hint: "`caisson ps --all` lists them." });
  return { state, seq };
}

async function foldFrom(
  log: Log,
  run: string,
  from: { state: RunState; seq: number },
  hooks: { before?: () => void; after?: (event: RunEvent) => void; events?: typeof runEvents } = {},
): Promise<number> {
  let { seq } = from;
  for await (const events of readPages(log, runStream(run), { fromSeq: seq + 1 })) {
    for (const stored of events) {
      const event = await understood(log, stored, hooks.events ?? runEvents);
      hooks.before?.();
      applyEvent(from.state, event);
      hooks.after?.(event);
      seq = stored.seq;
    }
  }
  return seq;
}

/** Whoever meets damage says so with the run's head, for those who only look at that. */
async function understood(log: Log, stored: StoredEvent, events: typeof runEvents): Promise<RunEvent> {
  try {
    return readEvent(events, stored);
  } catch (error) {
    await log.noteDamage(stored.stream, (error as CaissonError).message).catch(() => undefined);
    throw error;
  }
}

/** A stored event of a run. Throws what `readEvent` throws. */
export function parseRunEvent(stored: StoredEvent): RunEvent {
  return readEvent(runEvents, stored);
}

export interface OwnedJournal extends Journal, AsyncDisposable {
  lease(): Lease;
}

interface JournalOptions {
  log: Log;
  run: string;
  lease: () => Lease;
  crashpoint: Crashpoint;
  /** Once it fires nothing more is taken in: who was let go, or fenced out, has nothing to say about the run. */
  signal: AbortSignal;
}

/**
 * The journal of a run this process owns. Appends go one after another, each expecting the sequence after the last;
 * when somebody else's event (a message, an answer) came in between, it is folded in and the append repeated, which is
 * right because foreign events never contradict ours.
 */
export async function openJournal(options: JournalOptions): Promise<OwnedJournal> {
  const { log, run, crashpoint } = options;
  const stream = runStream(run);
  const folded = await foldRun(log, run);
  const { state } = folded;
  let { seq } = folded;
  let heard = 0;
  let tail: Promise<void> = Promise.resolve();
  const measure = createStopwatch(state);
  const foreign = new EventEmitter().setMaxListeners(0);
  const watching = new AbortController();

  const takeIn = async () => {
    const after = (event: RunEvent) => {
      heard += 1;
      foreign.emit("event", event);
    };
    // Time counts until the event that holds the run, and not after it.
    seq = await foldFrom(log, run, { state, seq }, { before: measure, after });
  };
  const apply = (events: readonly NewRunEvent[]) => {
    const at = new Date().toISOString();
    for (const event of events) applyEvent(state, makeEvent(runEvents, event, at));
  };
  /** Folded, not yet in the log. */
  let noted: readonly NewRunEvent[] = [];
  const appendNow = async (given: readonly NewRunEvent[], ifHeard?: number) => {
    const before = noted;
    noted = [];
    const events = withWorkedTime(given, measure());
    try {
      await write([...before, ...events], ifHeard);
    } catch (error) {
      // What the log will never take must not stand in the way of the run's end.
      if (!(error instanceof CaissonError) || error.code !== "too_large") noted = [...before, ...noted];
      throw error;
    }
    apply(events);
    for (const event of [...before, ...events]) crashpoint(`${event.type}:after`);
  };
  const write = async (events: readonly NewRunEvent[], ifHeard?: number) => {
    const stored = events.map((event) => makeEvent(runEvents, event));
    if (options.signal.aborted) throw letGoError(options.signal, run);
    for (const event of events) crashpoint(`${event.type}:before`);
    for (let races = 0; ; races++) {
      if (ifHeard !== undefined && ifHeard !== heard) {
        throw new CaissonError("conflict", `others said something to ${run} meanwhile`, { details: { heard } });
      }
      try {
        seq = (await log.append(stream, stored, { expectedSeq: seq, lease: options.lease(), signal: options.signal })).lastSeq;
        return;
      } catch (error) {
        if (!(error instanceof CaissonError) || error.code !== "conflict" || races >= RACES_MAX) throw error;
        await takeIn();
      }
    }
  };
  /** One at a time, whatever became of the one before. */
  const inTurn = (work: () => Promise<void>): Promise<void> => {
    const result = tail.then(work);
    tail = result.catch(() => undefined);
    return result;
  };

  const flush = () => inTurn(async () => (noted.length > 0 ? await appendNow([]) : undefined));

  const watcher = watchStream(log, { stream, signal: watching.signal, seq: () => seq, onNew: () => inTurn(takeIn) });

  return {
    state,
    lease: options.lease,
    heard: () => heard,
    append: (events, { ifHeard } = {}) => inTurn(() => appendNow(events, ifHeard)),
    note(given) {
      const events = withWorkedTime(given, measure());
      apply(events);
      noted = [...noted, ...events];
      // What makes this fail makes the next append fail, too, and that one is waited for.
      setImmediate(() => void flush().catch(() => undefined));
    },
    async changed(signal) {
      try {
        await once(foreign, "event", { signal });
      } catch (error) {
        throw new CaissonError("cancelled", `waiting for ${run} was given up`, { cause: error });
      }
    },
    onForeign(listener) {
      foreign.on("event", listener);
      return () => foreign.off("event", listener);
    },
    async [Symbol.asyncDispose]() {
      watching.abort();
      await watcher;
      await flush().catch(() => undefined);
    },
  };
}

/** Calls for each event past the sequence that is known, until the signal. Never rejects. */
async function watchStream(
  log: Log,
  options: { stream: string; signal: AbortSignal; seq: () => number; onNew: () => Promise<void> },
): Promise<void> {
  const { stream, signal, seq, onNew } = options;
  while (!signal.aborted) {
    try {
      for await (const event of log.subscribe(stream, { known: seq, signal })) if (event.seq > seq()) await onNew();
    } catch {
      // A log that cannot be read now may be readable soon, and what others say must be heard then.
      await delay(WATCH_AGAIN_MS, undefined, { signal }).catch(() => undefined);
    }
  }
}

/**
 * Milliseconds the run has worked, by a clock that nobody sets and that stands still while the machine sleeps. To be
 * asked before each event that may stop it.
 */
function createStopwatch(state: RunState): () => number {
  let { workedMs } = state;
  let lastMs = performance.now();
  return () => {
    const nowMs = performance.now();
    if (state.clock.counting) workedMs += nowMs - lastMs;
    lastMs = nowMs;
    return Math.ceil(workedMs);
  };
}

function withWorkedTime(events: readonly NewRunEvent[], workedMs: number): NewRunEvent[] {
  return events.map((event) => (measuredTypes.has(event.type) ? ({ ...event, data: { ...event.data, workedMs } } as NewRunEvent) : event));
}
