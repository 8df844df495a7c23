import type { Model } from "../../agent/model/model.ts";
import { CaissonError } from "../../contract/error/error.ts";
import { type RunFacts, waitsForResume } from "../../contract/run/run-facts.ts";
import type { QueuedFor, QueuePlace, RunQueueView } from "../../contract/run/run-queue.ts";
import type { Crashpoint } from "../../lib/crashpoint.ts";
import { defined } from "../../lib/defined.ts";
import { ignore } from "../../lib/failures.ts";
import type { RunDrives } from "../runs/run-drives.ts";
import type { ModelTape } from "../runs/start-run.ts";
import { appendUnowned } from "../vocabulary/append-unowned.ts";
import { headOfRun, toRunHead } from "../vocabulary/head-of-run.ts";
import { runStream } from "../vocabulary/station-names.ts";
import { Admissions, shuttingDownError } from "./admission.ts";
import { type DriverLook, drivenBy, drivenElsewhere, mayAdopt, resumeEvents, subRunError, toQueue } from "./adoption.ts";
import { queuePlace } from "./queue-place.ts";
import { queueRows } from "./queue-view.ts";
import { FAILURES_MAX, retryAfterMs } from "./retry.ts";
import type { SandboxRoom, TakenRoom } from "./sandbox-room.ts";
import { nextDueMs, nextToStart, type Place, placesIn, type QueueBounds, type Room, type ScheduleState } from "./schedule.ts";
import { standing, waitsOtherwise } from "./schedule-input.ts";

/** How often we check the log for runs whose driver died, and for changes by other processes. */
const LOOK_MS = 15_000;
/** The longest timer. Setting the clock makes timers wrong, so we check the time again after this long. */
const TIMER_MS_MAX = LOOK_MS;
const OPEN_RUNS_MAX = 100_000;

export interface RunQueueOptions extends DriverLook {
  drives: RunDrives;
  room: SandboxRoom;
  bounds: QueueBounds;
  crashpoint: Crashpoint;
  model: (name: string, tape: ModelTape) => Promise<Model>;
  /** Receives notices for the station's operator. */
  notice: (text: string) => void;
  /** Defaults to the machine's clock. */
  nowMs?: () => number;
}

/**
 * The runs of a station that it drives, and those that wait. Waiting is recorded in the log (`run.queued`), so nothing
 * is lost if this process dies; the queue is only a copy. See `schedule.ts` for the order.
 */
export class RunQueue {
  readonly #options: RunQueueOptions;
  readonly #nowMs: () => number;
  readonly #waiting = new Map<string, RunFacts>();
  readonly #working = new Map<string, RunFacts>();
  readonly #admissions = new Admissions();
  readonly #turns = new Map<string, number>();
  /** Failures in a row, by run. */
  readonly #failures = new Map<string, number>();
  #taken: TakenRoom = { sandboxes: 0, memoryBytes: 0, runs: new Set(), byOwner: new Map(), promisedBytes: new Map() };
  #places: Map<string, Place> | null = null;
  #isDraining = false;
  #isClosed = false;
  #timer: NodeJS.Timeout | undefined;
  #lookedAtMs: number | null = null;
  #work: Promise<void> = Promise.resolve();
  #isPoked = false;
  #idle = Promise.withResolvers<void>();

  constructor(options: RunQueueOptions) {
    this.#options = options;
    this.#nowMs = options.nowMs ?? Date.now;
  }

  get bounds(): QueueBounds {
    return this.#options.bounds;
  }

  counts(): { atWork: number; queued: number; draining: boolean } {
    return { atWork: this.#working.size, queued: this.#waiting.size, draining: this.#isDraining };
  }

  /**
   * Reserves a place for a new run until disposed of. Throws `busy` if too many runs wait, and `unavailable` once the
   * station accepts no new work.
   */
  admit(owner: string): Disposable {
    this.checkOpen();
    const waiting = [...this.#waiting.values()].map(({ owner }) => owner);
    return this.#admissions.admit(owner, { bounds: this.bounds, waiting });
  }

  /** Throws `unavailable` once the station accepts no new work. */
  checkOpen(): void {
    if (this.#isDraining || this.#isClosed) throw shuttingDownError();
  }

  /** Reads a run from the log again, after it was queued, changed or ended. */
  async refresh(run: string): Promise<void> {
    const { facts } = await headOfRun(this.#options.log, run);
    this.#takeIn(facts);
    this.#poke();
  }

  /**
   * Continues a run that has no driver, or a paused run that this process drives. Throws `conflict` for any other run
   * with a driver, and `invalid` for a sub-run.
   */
  async resume(run: string, { by, why }: { by: string; why: "resume" | "adoption" }): Promise<void> {
    const { log } = this.#options;
    const { facts } = await headOfRun(log, run);
    if (facts.parent !== null) throw subRunError(facts);
    this.#failures.delete(run);
    const driver = await drivenBy(run, this.#options);
    if (this.#working.has(run) && waitsForResume(facts)) return await appendUnowned(log, run, (now) => resumeEvents(now, by));
    if (driver !== null || this.#working.has(run)) throw drivenElsewhere(run, driver ?? "the station");
    using _ = facts.queued === null ? this.admit(facts.owner) : null;
    await this.#enqueue(run, { by, why });
  }

  /** Returns null for a run that does not wait. */
  placeOf(facts: RunFacts): QueuePlace | null {
    if (facts.queued === null) return null;
    this.#places ??= placesIn(this.#state());
    return queuePlace(facts, this.#places.get(facts.run) ?? { position: null, waitsFor: "nothing" }, this.bounds);
  }

  view(): RunQueueView {
    const { runsMax, runsPerOwnerMax, sandboxesMax, memoryBytesMax } = this.bounds;
    const { taken: takenRoom } = this.#state();
    const bounds = { runsMax, runsPerOwnerMax, sandboxesMax, memoryBytesMax };
    return {
      ...queueRows([...this.#waiting.values()], (facts) => this.placeOf(facts)),
      atWork: { runs: this.#working.size, ...takenRoom, ...bounds, draining: this.#isDraining },
    };
  }

  /**
   * Returns the room that sandboxes take, including those that running runs are about to create, and each owner's
   * share.
   */
  async readTakenRoom(): Promise<Pick<TakenRoom, "byOwner" | "promisedBytes"> & Room> {
    this.#taken = await this.#options.room.readTakenRoom();
    return { ...this.#state().taken, byOwner: this.#taken.byOwner, promisedBytes: this.#taken.promisedBytes };
  }

  /** Starts the queue: finds waiting runs, and runs whose driver died. */
  start(): void {
    this.#poke();
  }

  /** Starts no further runs and accepts none. */
  drain(): void {
    this.#isDraining = true;
    this.#places = null;
  }

  /** Resolves when no run is being driven. */
  async idle(): Promise<void> {
    if (this.#working.size > 0) await this.#idle.promise;
  }

  /** Starts no further runs. The caller has to stop those being driven. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#work;
  }

  #takeIn(facts: RunFacts): void {
    if (facts.queued === null || this.#working.has(facts.run)) this.#waiting.delete(facts.run);
    else this.#waiting.set(facts.run, facts);
    this.#places = null;
  }

  #state(): ScheduleState {
    return {
      ...standing({ waiting: [...this.#waiting.values()], working: [...this.#working.values()], taken: this.#taken }),
      bounds: this.bounds,
      turns: this.#turns,
      nowMs: this.#nowMs(),
      isDraining: this.#isDraining,
    };
  }

  /** Schedules one pass at a time. A call during a pass schedules another pass after it. */
  #poke(): void {
    if (this.#isPoked || this.#isClosed) return;
    this.#isPoked = true;
    this.#work = this.#work.then(async () => {
      this.#isPoked = false;
      // A log or folder that cannot be read now may be readable soon.
      await this.#pass().catch((error: Error) => this.#options.notice(`the queue could not be updated: ${error.message}`));
      this.#arm();
    });
  }

  async #pass(): Promise<void> {
    if (this.#lookedAtMs === null || performance.now() - this.#lookedAtMs >= LOOK_MS) await this.#look();
    while (!this.#isClosed) {
      await this.readTakenRoom();
      this.#places = null;
      const next = nextToStart(this.#state());
      if (next === null) return;
      await this.#begin(next.run);
    }
  }

  #arm(): void {
    clearTimeout(this.#timer);
    if (this.#isClosed) return;
    const dueMs = nextDueMs(this.#state());
    const waitMs = dueMs === null ? TIMER_MS_MAX : Math.min(TIMER_MS_MAX, Math.max(1, dueMs - this.#nowMs()));
    this.#timer = setTimeout(() => this.#poke(), waitMs).unref();
  }

  /** Reads the log for waiting runs and for runs whose driver died, including runs that other processes changed. */
  async #look(): Promise<void> {
    const { log, notice } = this.#options;
    const { heads } = await log.heads({ prefix: runStream(""), open: true, limit: OPEN_RUNS_MAX });
    const open = new Map(heads.map((head) => [toRunHead(head).facts.run, toRunHead(head)]));
    // These were queued or changed after the log query.
    for (const run of this.#waiting.keys()) if (!open.has(run)) await this.#inspect(run);
    for (const [run, head] of open) {
      if (this.#isClosed) return;
      if (this.#working.has(run) || (this.#failures.get(run) ?? 0) >= FAILURES_MAX) continue;
      if (head.facts.queued !== null) this.#takeIn(head.facts);
      else if (await mayAdopt(head, { ...this.#options, nowMs: this.#nowMs() }))
        await this.#enqueue(run, { by: "station", why: "adoption", ifSeq: head.seq }).catch((error: Error) =>
          notice(`${run} was not continued: ${error.message}`),
        );
    }
    this.#lookedAtMs = performance.now();
  }

  /** Reads the run's current state; null if it no longer waits. */
  async #inspect(run: string): Promise<RunFacts | null> {
    const head = await this.#options.log.head(runStream(run));
    const facts = head === null ? null : toRunHead(head).facts;
    if (facts === null) this.#waiting.delete(run);
    else this.#takeIn(facts);
    return this.#waiting.has(run) ? facts : null;
  }

  async #begin(run: string): Promise<void> {
    const { drives, crashpoint } = this.#options;
    const before = this.#waiting.get(run);
    const facts = await this.#inspect(run);
    // Another process may have taken it, ended it, or changed what it waits for.
    if (facts === null || (before !== undefined && waitsOtherwise(before, facts))) return;
    crashpoint("queue.begin:before");
    this.#waiting.delete(run);
    this.#working.set(run, facts);
    this.#places = null;
    this.#turns.set(facts.owner, Math.max(0, ...this.#turns.values()) + 1);
    const tape = facts.queued?.tape ?? null;
    const isRetried = (this.#failures.get(run) ?? 0) + 1 < FAILURES_MAX;
    drives.begin(run, {
      driver: "station",
      isRetried,
      ...(tape !== null && { model: (name: string) => this.#options.model(name, defined(tape)) }),
    });
    crashpoint("queue.begin:after");
    void this.#settle(run, drives.outcome(run) ?? Promise.resolve());
  }

  async #settle(run: string, driven: Promise<void>): Promise<void> {
    const failure = await driven.then(
      () => null,
      (error: unknown) => ({ error }),
    );
    this.#working.delete(run);
    this.#places = null;
    if (failure === null) this.#failures.delete(run);
    if (failure !== null && !this.#isClosed && !isBeingRewound(failure.error)) await this.#scheduleRetry(run, failure.error);
    // A user may have continued it while this process cleaned up after the drive.
    else await ignore(this.#inspect(run), "the next change of the run is read again");
    if (this.#working.size === 0) {
      this.#idle.resolve();
      this.#idle = Promise.withResolvers();
    }
    this.#poke();
  }

  /** Schedules the next attempt for a run that could not be driven. */
  async #scheduleRetry(run: string, error: unknown): Promise<void> {
    const { notice } = this.#options;
    const times = (this.#failures.get(run) ?? 0) + 1;
    this.#failures.set(run, times);
    const afterMs = retryAfterMs(error, times);
    notice(`${run} could not be driven${afterMs === null ? "" : ", and will be retried"}: ${(error as Error).message}`);
    if (afterMs === null) return;
    const startAt = new Date(this.#nowMs() + afterMs).toISOString();
    // If this fails, too, the next pass finds the run.
    await this.#enqueue(run, { by: "station", why: "retry", startAt }).catch((failed: Error) =>
      notice(`${run} was not continued: ${failed.message}`),
    );
  }

  /** Queues the run. With `ifSeq`, only if no event was appended since. */
  async #enqueue(run: string, options: { by: string; why: QueuedFor; startAt?: string; ifSeq?: number }): Promise<void> {
    const { log, crashpoint } = this.#options;
    const { by, why, startAt = null, ifSeq } = options;
    crashpoint("run.queued:before");
    await appendUnowned(log, run, (facts, seq) => {
      return ifSeq === undefined || ifSeq === seq ? toQueue(facts, { by, why, startAt }) : [];
    });
    crashpoint("run.queued:after");
    await this.refresh(run);
  }
}

/** Whether a drive ended because a user rewinds the run. It then waits for a message. */
function isBeingRewound(error: unknown): boolean {
  return error instanceof CaissonError && error.details?.rewinding === true;
}
