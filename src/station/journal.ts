import { EventEmitter, once } from "node:events";
import type { Journal, NewRunEvent } from "../agent/journal.ts";
import { applyEvent, emptyRunState, type RunState } from "../agent/run-state.ts";
import { CaissonError } from "../contract/error.ts";
import { RunEvent } from "../contract/run-event.ts";
import type { Lease, Log, StoredEvent } from "../log/log.ts";
import type { Crashpoint } from "./crashpoint.ts";

/** Events a person or another process may add to a run it does not own. */
export type ForeignEvent = Extract<
  NewRunEvent,
  { type: "message.received" | "permission.answered" | "run.stop_requested" | "run.paused" | "run.continued" }
>;

const PAGE = 2000;
/** Others append rarely; losing this many races in a row means something is wrong. */
const RACES_MAX = 100;

export const runStream = (run: string) => `run/${run}`;

/** Reads a run's events and folds them. Throws `not_found` for a run that is not there, `internal` for an event nobody understands. */
export async function foldRun(log: Log, run: string): Promise<{ state: RunState; seq: number }> {
  const state = emptyRunState();
  const seq = await foldFrom(log, run, { state, seq: 0 });
  if (seq === 0) throw new CaissonError("not_found", `There is no run ${run}.`, { hint: "`caisson ps` lists the runs." });
  return { state, seq };
}

/** As far as it can be understood, and what was wrong with the rest. */
export async function foldReadable(log: Log, run: string): Promise<{ state: RunState; damage: string | null }> {
  const state = emptyRunState();
  try {
    await foldFrom(log, run, { state, seq: 0 });
    return { state, damage: null };
  } catch (error) {
    if (error instanceof CaissonError && error.code === "internal") return { state, damage: error.message };
    throw error;
  }
}

async function foldFrom(
  log: Log,
  run: string,
  from: { state: RunState; seq: number },
  onEvent?: (event: RunEvent) => void,
): Promise<number> {
  let { seq } = from;
  for (;;) {
    const events = await log.read(runStream(run), { fromSeq: seq + 1, limit: PAGE });
    for (const stored of events) {
      const event = parseRunEvent(stored);
      applyEvent(from.state, event);
      onEvent?.(event);
      seq = stored.seq;
    }
    if (events.length < PAGE) return seq;
  }
}

/** A stored event as the type it claims to be; what was written by a newer version, or damaged, is said so. */
export function parseRunEvent(stored: StoredEvent): RunEvent {
  const parsed = RunEvent.safeParse({ type: stored.type, version: stored.version, at: stored.at, data: stored.data });
  if (parsed.success) return parsed.data;
  throw new CaissonError(
    "internal",
    `Event ${stored.seq} of ${stored.stream} (${stored.type}, version ${stored.version}) cannot be understood.`,
    {
      hint: "It was written by another version of Caisson, or is damaged; `caisson logs --check` tells.",
    },
  );
}

export interface OwnedJournal extends Journal, AsyncDisposable {
  lease(): Lease;
}

/**
 * The journal of a run this process owns. Appends go one after another, each expecting the sequence after the last; when somebody else's event (a message, an
 * answer) came in between, it is folded in and the append repeated, which is right because foreign events never contradict ours.
 */
export async function openJournal(options: {
  log: Log;
  run: string;
  lease: () => Lease;
  crashpoint: Crashpoint;
  /** Once it fires nothing more is taken in: who was let go, or fenced out, has nothing to say about the run. */
  signal: AbortSignal;
}): Promise<OwnedJournal> {
  const { log, run, crashpoint } = options;
  const stream = runStream(run);
  const folded = await foldRun(log, run);
  const { state } = folded;
  let { seq } = folded;
  let tail: Promise<void> = Promise.resolve();
  const foreign = new EventEmitter().setMaxListeners(0);
  const watching = new AbortController();

  const takeIn = async () => {
    seq = await foldFrom(log, run, { state, seq }, (event) => foreign.emit("event", event));
  };
  const apply = (events: readonly NewRunEvent[]) => {
    const at = new Date().toISOString();
    for (const event of events) applyEvent(state, { ...event, version: 1, at } as RunEvent);
  };
  /** Folded, not yet in the log. */
  let noted: readonly NewRunEvent[] = [];
  const appendNow = async (events: readonly NewRunEvent[]) => {
    const before = noted;
    noted = [];
    try {
      await write([...before, ...events]);
    } catch (error) {
      // What the log will never take must not stand in the way of the run's end.
      if (!(error instanceof CaissonError) || error.code !== "too_large") noted = [...before, ...noted];
      throw error;
    }
    apply(events);
    for (const event of [...before, ...events]) crashpoint(`${event.type}:after`);
  };
  const write = async (events: readonly NewRunEvent[]) => {
    const stored = events.map((event) => ({ type: event.type, version: 1, data: event.data as never }));
    if (options.signal.aborted) throw new CaissonError("cancelled", `The run ${run} was let go.`);
    for (const event of events) crashpoint(`${event.type}:before`);
    for (let races = 0; ; races++) {
      try {
        seq = (await log.append(stream, stored, { expectedSeq: seq, lease: options.lease() })).lastSeq;
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

  const watcher = (async () => {
    for await (const event of log.subscribe(stream, { fromSeq: seq + 1, signal: watching.signal })) {
      if (event.seq > seq) await inTurn(takeIn);
    }
  })().catch(() => undefined);

  return {
    state,
    lease: options.lease,
    append: (events) => inTurn(() => appendNow(events)),
    note(events) {
      apply(events);
      noted = [...noted, ...events];
      // What makes this fail makes the next append fail, too, and that one is waited for.
      setImmediate(() => void flush().catch(() => undefined));
    },
    async changed(signal) {
      try {
        await once(foreign, "event", { signal });
      } catch (error) {
        throw new CaissonError("cancelled", `Waiting for ${run} was given up.`, { cause: error });
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
