import { EventEmitter, once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { type Journal, releasedError, rewindingError } from "../../agent/journal.ts";
import { applyEvent, applyRewoundEvent, emptyRunState, type RunState } from "../../agent/run-state.ts";
import { CaissonError } from "../../contract/error/error.ts";
import { makeEvent, readEvent } from "../../contract/event/event-family.ts";
import { measuredTypes, type NewRunEvent, type RunEvent, runEvents } from "../../contract/run/run-event.ts";
import type { Crashpoint } from "../../lib/crashpoint.ts";
import { ignore } from "../../lib/failures.ts";
import type { Lease, Log, StoredEvent } from "../../log/log.ts";
import { readPages } from "../../log/read-pages.ts";
import { runStream } from "../vocabulary/station-names.ts";
import { createRewoundEvents } from "./rewound-events.ts";

/** Other processes rarely append; losing this many races in a row means that something is wrong. */
const RACES_MAX = 100;
const WATCH_AGAIN_MS = 1_000;

/**
 * Reads and folds a run's events, or those up to `toSeq`. Throws `not_found` for an unknown run, and `internal` for an
 * event that this Caisson does not understand.
 */
export async function foldRun(
  log: Log,
  run: string,
  options: { events?: typeof runEvents; toSeq?: number } = {},
): Promise<{ state: RunState; seq: number }> {
  const rewound = createRewoundEvents();
  let state = emptyRunState();
  let seq = 0;
  // Only the end of a rewound part tells that it was rewound, so the fold then begins again and skips it.
  for (let isComplete = false; !isComplete; ) {
    isComplete = true;
    state = emptyRunState();
    const after = (event: RunEvent, at: number) => {
      if (event.type === "run.rewound" && rewound.add({ seq: at, data: event.data })) isComplete = false;
    };
    seq = await foldFrom(log, run, { state, seq: 0 }, { ...options, after, isRewound: rewound.has });
  }
  if (seq === 0) throw new CaissonError("not_found", `there is no run ${run}`, { hint: "`caisson ps --all` lists them." });
  return { state, seq };
}

async function foldFrom(
  log: Log,
  run: string,
  from: { state: RunState; seq: number },
  hooks: {
    before?: () => void;
    after?: (event: RunEvent, seq: number) => void;
    events?: typeof runEvents;
    toSeq?: number;
    isRewound?: (seq: number) => boolean;
  } = {},
): Promise<number> {
  const { toSeq = Number.POSITIVE_INFINITY } = hooks;
  let { seq } = from;
  for await (const events of readPages(log, runStream(run), { fromSeq: seq + 1 })) {
    for (const stored of events) {
      if (stored.seq > toSeq) return seq;
      const event = await readOrNoteDamage(log, stored, hooks.events ?? runEvents);
      hooks.before?.();
      if (hooks.isRewound?.(stored.seq) === true) applyRewoundEvent(from.state, event);
      else applyEvent(from.state, event);
      hooks.after?.(event, stored.seq);
      seq = stored.seq;
    }
  }
  return seq;
}

/** Reads an event. If it is damaged, notes the damage in the run's head for readers of heads. */
async function readOrNoteDamage(log: Log, stored: StoredEvent, events: typeof runEvents): Promise<RunEvent> {
  try {
    return readEvent(events, stored);
  } catch (error) {
    await ignore(log.noteDamage(stored.stream, (error as CaissonError).message), "the failure itself is thrown");
    throw error;
  }
}

/** Parses a stored event of a run. Throws as `readEvent`. */
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
  /** Once it fires, nothing more is appended: a process that released or lost the run must not write to it. */
  signal: AbortSignal;
}

/**
 * Opens the journal of a run that this process holds. Appends run one after another, each with the expected sequence
 * number. If another process's event (a message, an answer) came first, we fold it in and repeat the append, which is
 * safe because such events never contradict ours.
 */
export async function openJournal(options: JournalOptions): Promise<OwnedJournal> {
  const { log, run, crashpoint } = options;
  const stream = runStream(run);
  const folded = await foldRun(log, run);
  const { state } = folded;
  let { seq } = folded;
  let unownedCount = 0;
  let tail: Promise<void> = Promise.resolve();
  const measure = createStopwatch(state);
  const unownedEvents = new EventEmitter().setMaxListeners(0);
  const watching = new AbortController();

  const takeIn = async () => {
    const after = (event: RunEvent) => {
      if (event.type === "run.rewound") throw rewindingError(run);
      unownedCount += 1;
      unownedEvents.emit("event", event);
    };
    // Time counts up to the event that pauses the run, not beyond.
    seq = await foldFrom(log, run, { state, seq }, { before: measure, after });
  };
  const apply = (events: readonly NewRunEvent[]) => {
    const at = new Date().toISOString();
    for (const event of events) applyEvent(state, makeEvent(runEvents, event, at));
  };
  /** Events that are folded but not yet in the log. */
  let noted: readonly NewRunEvent[] = [];
  const appendNow = async (newEvents: readonly NewRunEvent[], ifHeard?: number) => {
    const before = noted;
    noted = [];
    const events = withWorkedTime(newEvents, measure());
    try {
      await write([...before, ...events], ifHeard);
    } catch (error) {
      // We drop events that the log will never accept, so that they cannot block the run's end.
      if (!(error instanceof CaissonError) || error.code !== "too_large") noted = [...before, ...noted];
      throw error;
    }
    apply(events);
    for (const event of [...before, ...events]) crashpoint(`${event.type}:after`);
  };
  const write = async (events: readonly NewRunEvent[], ifHeard?: number) => {
    const stored = events.map((event) => makeEvent(runEvents, event));
    if (options.signal.aborted) throw releasedError(options.signal, run);
    for (const event of events) crashpoint(`${event.type}:before`);
    for (let races = 0; ; races++) {
      if (ifHeard !== undefined && ifHeard !== unownedCount) {
        throw new CaissonError("conflict", `other events were appended to ${run} in the meantime`, { details: { heard: unownedCount } });
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
  /** Runs one append at a time, and continues after a failed one. */
  const inTurn = (work: () => Promise<void>): Promise<void> => {
    const result = tail.then(work);
    tail = ignore(result, "its caller awaits it; the next append does not depend on it");
    return result;
  };

  const flush = () => inTurn(async () => (noted.length > 0 ? await appendNow([]) : undefined));

  const watcher = watchStream(log, { stream, signal: watching.signal, seq: () => seq, onNew: () => inTurn(takeIn) });

  return {
    state,
    lease: options.lease,
    countUnowned: () => unownedCount,
    append: (events, { ifHeard } = {}) => inTurn(() => appendNow(events, ifHeard)),
    note(newEvents) {
      const events = withWorkedTime(newEvents, measure());
      apply(events);
      noted = [...noted, ...events];
      // If this fails, the next append fails, too, and its caller gets the error.
      setImmediate(() => void ignore(flush(), "the caller of the next append gets the error"));
    },
    async waitForUnowned(signal) {
      try {
        await once(unownedEvents, "event", { signal });
      } catch (error) {
        throw new CaissonError("cancelled", `waiting for ${run} was cancelled`, { cause: error });
      }
    },
    onForeign(listener) {
      unownedEvents.on("event", listener);
      return () => unownedEvents.off("event", listener);
    },
    async [Symbol.asyncDispose]() {
      watching.abort();
      await watcher;
      await ignore(flush(), "the callers that appended got the error");
    },
  };
}

/** Calls `onNew` for each event past the known sequence number, until the signal fires. Never rejects. */
async function watchStream(
  log: Log,
  options: { stream: string; signal: AbortSignal; seq: () => number; onNew: () => Promise<void> },
): Promise<void> {
  const { stream, signal, seq, onNew } = options;
  while (!signal.aborted) {
    try {
      for await (const event of log.subscribe(stream, { known: seq, signal })) if (event.seq > seq()) await onNew();
    } catch {
      // A log that cannot be read now may be readable soon, and then we must not miss other processes' events.
      await ignore(delay(WATCH_AGAIN_MS, undefined, { signal }), "the loop checks the signal");
    }
  }
}

/**
 * Returns a function that measures how long the run has worked, in milliseconds, by a monotonic clock that stops while
 * the machine sleeps. Call it before each event that may stop the clock.
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
