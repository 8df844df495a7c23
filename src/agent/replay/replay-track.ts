import { EventEmitter, once } from "node:events";
import { CaissonError } from "../../contract/error/error.ts";
import type { NewRunEvent, RunEvent } from "../../contract/run/run-event.ts";
import type { ReplayDifference } from "../../contract/run/run-replay.ts";
import { type Journal, releasedError } from "../journal.ts";
import { applyEvent, emptyRunState, type RunState } from "../run-state.ts";
import { isForViewers, type ReplayItem } from "./replay-items.ts";
import { differentFields, excerpt } from "./same-event.ts";

/**
 * A recording, and how far the loop has repeated it. The loop's events are compared with the recorded ones and then
 * replaced by them, so ids, times and durations are those of the recording, and the state is the one of the original.
 */
export interface ReplayTrack {
  readonly state: RunState;
  difference(): ReplayDifference | null;
  /** Says what the replay could not compare, and why. */
  readonly notCompared: Set<string>;
  /** The number of events repeated so far. */
  repeatedCount(): number;
  /** Supplies what others appended before the next event of the loop. Returns false if the recording is over. */
  begin(): boolean;
  /** Opens the journal of one driver. `signal` fires where the next driver began, or the recording ends. */
  open(): Journal & { signal: AbortSignal };
  /** The next event of the loop, or null if the driver had none. */
  next(): ReplayItem | null;
  /** The event of the loop after that. */
  after(): ReplayItem | null;
  /** The recorded result of a call that the same driver awaited, or undefined. */
  resultOf(call: string): Extract<RunEvent, { type: "tool.ended" }> | undefined;
  /** The recorded events of a type about a call. */
  eventsOf<Type extends "file.changed" | "todo.changed">(type: Type, call: string): Extract<RunEvent, { type: Type }>[];
  /** Resolves when the recorded result of this call is the next one. */
  turnOf(call: string): Promise<void>;
  /** Interrupts the current effect, as the end of the run's time did. */
  interrupt(): void;
  /** Ends the replay at a difference that the track cannot see by itself. Throws. */
  differ(replayed: string): never;
}

export interface TrackOptions {
  /** Called before the first event of each step. Returns false to end the replay there. */
  onStep: (step: number) => boolean;
  /** Called for each event of others. */
  onForeign: (event: RunEvent) => void;
}

export function createTrack(recorded: readonly ReplayItem[], options: TrackOptions): ReplayTrack {
  const items = [...recorded];
  const state = emptyRunState();
  const moves = new EventEmitter().setMaxListeners(0);
  const notCompared = new Set<string>();
  let cursor = 0;
  let repeated = 0;
  let foreignCount = 0;
  let difference: ReplayDifference | null = null;
  let driver = new AbortController();
  let isOver = false;

  const supply = (item: ReplayItem) => {
    cursor += 1;
    applyEvent(state, item.event);
    // The recorded results contain what the hooks said.
    if (item.event.type === "run.created") state.definition = { ...state.definition, hooks: { before: [], after: [] } };
    foreignCount += 1;
    options.onForeign(item.event);
    moves.emit("foreign", item.event);
  };
  const supplyForeign = () => {
    for (let item = items[cursor]; item?.kind === "foreign"; item = items[cursor]) supply(item);
    if (items[cursor]?.kind !== "own") driver.abort();
    moves.emit("moved");
  };
  const ofThisDriver = function* (): Generator<ReplayItem> {
    for (let at = cursor; at < items.length; at++) {
      const item = items[at] as ReplayItem;
      if (item.kind === "claim") return;
      if (item.kind === "own") yield item;
    }
  };
  const next = (): ReplayItem | null => ofThisDriver().next().value ?? null;
  const differ = (replayed: string, fields: readonly string[] | null = null): never => {
    const item = next();
    difference ??= {
      step: item?.step ?? state.step,
      seq: item?.seq ?? null,
      recorded: item === null ? null : excerpt(item.event as NewRunEvent, fields ?? undefined),
      replayed,
      fields: [...(fields ?? [])],
    };
    driver.abort();
    // The loop passes on errors of the log, and does not record them as failures of the run.
    throw new CaissonError("conflict", "the replay differs from the recording", { details: { log: true } });
  };
  /** Calls that run in parallel start before others end; when exactly, depends on their duration. */
  const bringStartForward = (event: NewRunEvent) => {
    if (event.type !== "tool.started") return;
    for (let at = cursor; at < items.length; at++) {
      const item = items[at] as ReplayItem;
      const { type, data } = item.event;
      if (type === "tool.started" && data.call === event.data.call) return void items.splice(cursor, 0, ...items.splice(at, 1));
      const isPassed = item.kind === "foreign" || (item.kind === "own" && (type === "tool.ended" || type === "file.changed"));
      if (!isPassed) return;
    }
  };
  const ignoredFields = (event: NewRunEvent): readonly string[] => {
    return event.type === "model.requested" && notCompared.has(RULES_UNKNOWN) ? ["digest", "contextTokens"] : [];
  };
  const repeat = (event: NewRunEvent) => {
    if (isForViewers(event)) return;
    for (let item = items[cursor]; item?.kind === "foreign"; item = items[cursor]) supply(item);
    if (event.type === "step.started" && !options.onStep(event.data.step)) {
      isOver = true;
      driver.abort();
      throw new CaissonError("conflict", "the replay ends here", { details: { log: true } });
    }
    bringStartForward(event);
    const item = items[cursor];
    if (item?.kind !== "own") return differ(excerpt(event));
    const recordedEvent = item.event as NewRunEvent;
    let fields = differentFields(event, recordedEvent, { ignoring: ignoredFields(event) });
    if (fields?.includes("digest") && mayLackRules(items, state)) {
      notCompared.add(RULES_UNKNOWN);
      fields = differentFields(event, recordedEvent, { ignoring: ignoredFields(event) });
    }
    if (fields === null) return differ(excerpt(event));
    if (fields.length > 0) return differ(excerpt(event, fields), fields);
    cursor += 1;
    repeated += 1;
    applyEvent(state, item.event);
  };

  const firstEnd = (): string | null => {
    for (const { event } of ofThisDriver()) if (event.type === "tool.ended") return event.data.call;
    return null;
  };

  return {
    state,
    difference: () => difference,
    notCompared,
    repeatedCount: () => repeated,
    begin() {
      if (isOver || difference !== null) return false;
      for (let item = items[cursor]; item !== undefined && item.kind !== "own"; item = items[cursor]) supply(item);
      return cursor < items.length;
    },
    open() {
      const controller = new AbortController();
      driver = controller;
      const { signal } = controller;
      const take = (events: readonly NewRunEvent[]) => {
        if (signal.aborted) throw releasedError(signal, state.run);
        for (const event of events) repeat(event);
        supplyForeign();
      };
      return {
        signal,
        state,
        countUnowned: () => foreignCount,
        async append(events, { ifHeard } = {}) {
          if (ifHeard !== undefined && ifHeard !== foreignCount) {
            throw new CaissonError("conflict", "other events came first", { details: { heard: foreignCount } });
          }
          take(events);
        },
        note: take,
        async waitForUnowned(waiting) {
          await once(moves, "foreign", { signal: waiting }).catch((error: unknown) => {
            throw new CaissonError("cancelled", "waiting was cancelled", { cause: error });
          });
        },
        onForeign(listener) {
          moves.on("foreign", listener);
          return () => moves.off("foreign", listener);
        },
      };
    },
    next,
    after: () => ofThisDriver().drop(1).next().value ?? null,
    resultOf(call) {
      for (const { event } of ofThisDriver()) if (event.type === "tool.ended" && event.data.call === call) return event;
      return undefined;
    },
    eventsOf(type, call) {
      const found = [...ofThisDriver()].map(({ event }) => event);
      return found.filter((event) => event.type === type && event.data.call === call) as never;
    },
    async turnOf(call) {
      while (firstEnd() !== call) await once(moves, "moved");
    },
    interrupt() {
      // Only the listeners of the current effect hear this; it is no event of the run.
      moves.emit("foreign", { type: "run.stop_requested", version: 1, at: "", data: { by: "replay" } } satisfies RunEvent);
    },
    differ,
  };
}

export const RULES_UNKNOWN =
  "the requests to the model: this run was recorded by a version that did not record the workspace's instructions";

/** Returns whether the requests may contain rules that are not in the log, as in logs of older versions. */
function mayLackRules(items: readonly ReplayItem[], { definition }: RunState): boolean {
  if (definition.memory.length === 0 && definition.skills.length === 0) return false;
  return !items.some(({ event }) => event.type === "rules.loaded");
}
