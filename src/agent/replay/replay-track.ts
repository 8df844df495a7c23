import { EventEmitter, once } from "node:events";
import { CaissonError } from "../../contract/error/error.ts";
import type { NewRunEvent, RunEvent } from "../../contract/run/run-event.ts";
import type { ReplayDifference } from "../../contract/run/run-replay.ts";
import { type Journal, releasedError } from "../journal.ts";
import { applyEvent, applyRewoundEvent, emptyRunState } from "../run-state.ts";
import { RecordingCursor } from "./recording-cursor.ts";
import { isForViewers, type ReplayItem } from "./replay-items.ts";
import { differentFields, excerpt } from "./same-event.ts";

export const RULES_UNKNOWN =
  "the requests to the model: this run was recorded by a version that did not record the workspace's instructions";

export interface TrackOptions {
  /** Called before the first event of each step. Returns false to end the replay there. */
  onStep: (step: number) => boolean;
  /** Called for each event that the replay supplies. */
  onForeign: (event: RunEvent) => void;
}

/**
 * A recording, and how far the loop has repeated it. The loop's events are compared with the recorded ones and then
 * replaced by them, so ids, times and durations are those of the recording, and the state is the one of the original.
 */
export class ReplayTrack {
  readonly state = emptyRunState();
  readonly cursor: RecordingCursor;
  /** What could not be compared, and why. */
  readonly notCompared = new Set<string>();
  readonly #options: TrackOptions;
  readonly #moves = new EventEmitter().setMaxListeners(0);
  #difference: ReplayDifference | null = null;
  #isOver = false;
  #repeatedCount = 0;
  #foreignCount = 0;
  #driver = new AbortController();

  constructor(items: readonly ReplayItem[], options: TrackOptions) {
    this.cursor = new RecordingCursor(items);
    this.#options = options;
  }

  get difference(): ReplayDifference | null {
    return this.#difference;
  }

  /** How far the replay has got in the recording. */
  get position(): number {
    return this.cursor.position;
  }

  /** The number of the loop's events so far. */
  get repeatedCount(): number {
    return this.#repeatedCount;
  }

  /** Supplies everything before the next event of the loop. Returns false if the replay is over. */
  begin(): boolean {
    if (this.#isOver || this.#difference !== null) return false;
    for (let { item } = this.cursor; item !== undefined && item.kind !== "own"; { item } = this.cursor) this.#supply(item);
    return this.cursor.item !== undefined;
  }

  /** Opens the journal of one driver. `signal` fires where the next driver began, or the replay ends. */
  open(): Journal & { signal: AbortSignal } {
    this.#driver = new AbortController();
    const { signal } = this.#driver;
    const take = (events: readonly NewRunEvent[]) => {
      if (signal.aborted) throw releasedError(signal, this.state.run);
      for (const event of events) this.#repeat(event);
      this.#supplyForeign();
      if (this.cursor.item?.kind !== "own") this.#driver.abort();
      this.#moves.emit("moved");
    };
    return {
      signal,
      state: this.state,
      countUnowned: () => this.#foreignCount,
      append: async (events, { ifHeard } = {}) => {
        if (ifHeard !== undefined && ifHeard !== this.#foreignCount)
          throw new CaissonError("conflict", "other events came first", { details: { heard: this.#foreignCount } });
        take(events);
      },
      note: take,
      waitForUnowned: async (waiting) => {
        await once(this.#moves, "foreign", { signal: waiting }).catch((error: unknown) => {
          throw new CaissonError("cancelled", "waiting was cancelled", { cause: error });
        });
      },
      onForeign: (listener) => {
        this.#moves.on("foreign", listener);
        return () => this.#moves.off("foreign", listener);
      },
    };
  }

  /** Resolves when the result of this call is the next one. */
  async untilResult(call: string): Promise<void> {
    while (this.cursor.nextResult() !== call) await once(this.#moves, "moved");
  }

  /** Interrupts the current effect, as the end of the run's time did. */
  interrupt(): void {
    // Only the listeners of the current effect get this; it is no event of the run.
    this.#moves.emit("foreign", { type: "run.stop_requested", version: 1, at: "", data: { by: "replay" } } satisfies RunEvent);
  }

  /** Ends the replay at a difference. */
  differ(replayed: string, fields: readonly string[] = []): never {
    const item = this.cursor.next();
    this.#difference ??= {
      step: item?.step ?? this.state.step,
      seq: item?.seq ?? null,
      recorded: item === null ? null : excerpt(item.event, fields.length === 0 ? undefined : fields),
      replayed,
      fields: [...fields],
    };
    return this.#end("the replay differs from the recording");
  }

  #end(why: string): never {
    this.#isOver = true;
    this.#driver.abort();
    // The loop passes on errors of the log, and does not record them as failures of the run.
    throw new CaissonError("conflict", why, { details: { log: true } });
  }

  #supply({ event, isRewound }: ReplayItem): void {
    this.cursor.advance();
    if (isRewound) {
      applyRewoundEvent(this.state, event);
      return;
    }
    applyEvent(this.state, event);
    // The recorded results contain what the hooks said.
    if (event.type === "run.created") this.state.definition = { ...this.state.definition, hooks: { before: [], after: [] } };
    this.#foreignCount += 1;
    this.#options.onForeign(event);
    this.#moves.emit("foreign", event);
  }

  #supplyForeign(): void {
    for (let { item } = this.cursor; item?.kind === "foreign"; { item } = this.cursor) this.#supply(item);
  }

  #repeat(event: NewRunEvent): void {
    if (isForViewers(event)) return;
    this.#supplyForeign();
    if (event.type === "step.started" && !this.#options.onStep(event.data.step)) this.#end("the replay ends here");
    this.cursor.bringStart(event);
    const { item } = this.cursor;
    const fields = item?.kind === "own" ? this.#compare(event, item.event) : null;
    if (item === undefined || fields === null) this.differ(excerpt(event));
    if (fields.length > 0) this.differ(excerpt(event, fields), fields);
    this.cursor.advance();
    this.#repeatedCount += 1;
    applyEvent(this.state, item.event);
  }

  #compare(event: NewRunEvent, recorded: RunEvent): string[] | null {
    const fields = differentFields(event, recorded);
    if (event.type !== "model.requested" || !fields?.includes("digest")) return fields;
    if (this.#mayLackRules()) this.notCompared.add(RULES_UNKNOWN);
    return this.notCompared.has(RULES_UNKNOWN) ? fields.filter((name) => name !== "digest" && name !== "contextTokens") : fields;
  }

  /** Returns whether requests may contain rules that are not in the log, as in logs of older versions. */
  #mayLackRules(): boolean {
    const { memory, skills } = this.state.definition;
    return memory.length + skills.length > 0 && !this.cursor.has("rules.loaded");
  }
}
