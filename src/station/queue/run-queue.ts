import type { Model } from "../../agent/model/model.ts";
import { type RunFacts, waitsForResume } from "../../contract/run-facts.ts";
import type { QueuedFor, QueuePlace, RunQueueView } from "../../contract/run-queue.ts";
import { defined } from "../../lib/defined.ts";
import type { Crashpoint } from "../crashpoint.ts";
import { appendForeign } from "../runs/append-foreign.ts";
import { headOfRun, runStream, toRunHead } from "../runs/head-of-run.ts";
import type { RunDrives } from "../runs/run-drives.ts";
import type { ModelTape } from "../runs/start-run.ts";
import { Admissions, isEnding } from "./admission.ts";
import { type DriverLook, drivenBy, goesOn, isDriven, isSubRun, mayAdopt, toQueue } from "./adoption.ts";
import { queuePlace } from "./queue-place.ts";
import { queueRows } from "./queue-view.ts";
import { FAILURES_MAX, retryAfterMs } from "./retry.ts";
import type { SandboxRoom, TakenRoom } from "./sandbox-room.ts";
import { nextDueMs, nextToStart, type Place, placesIn, type QueueBounds, type Room, type ScheduleState } from "./schedule.ts";
import { standing, waitsOtherwise } from "./standing.ts";

/** How often the log is looked at for runs whose driver died, and for what other processes changed. */
const LOOK_MS = 15_000;
/** A clock that is set makes a timer wrong; so none is longer than this, and the time is looked at again. */
const TIMER_MS_MAX = LOOK_MS;
const OPEN_RUNS_MAX = 100_000;

export interface RunQueueOptions extends DriverLook {
  drives: RunDrives;
  room: SandboxRoom;
  bounds: QueueBounds;
  crashpoint: Crashpoint;
  model: (name: string, tape: ModelTape) => Promise<Model>;
  /** Told what is worth a word to whoever runs the station. */
  notice: (text: string) => void;
  /** Default the machine's clock. */
  nowMs?: () => number;
}

/**
 * The runs of a station: which it drives, and which wait. What waits is a fact of the log (`run.queued`), so that
 * nothing is lost with this process; here is only what was read from there. See `schedule.ts` for the order.
 */
export class RunQueue {
  readonly #options: RunQueueOptions;
  readonly #nowMs: () => number;
  readonly #waiting = new Map<string, RunFacts>();
  readonly #working = new Map<string, RunFacts>();
  readonly #admissions = new Admissions();
  readonly #turns = new Map<string, number>();
  /** How often in a row a run could not be driven. */
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
   * A place for a run that is about to be made, until it is disposed of. Throws `busy` where too many wait,
   * `unavailable` once the station takes no more.
   */
  admit(owner: string): Disposable {
    this.checkOpen();
    const waiting = [...this.#waiting.values()].map(({ owner }) => owner);
    return this.#admissions.admit(owner, { bounds: this.bounds, waiting });
  }

  /** Throws `unavailable` once the station takes no new work. */
  checkOpen(): void {
    if (this.#isDraining || this.#isClosed) throw isEnding();
  }

  /** Looks at a run in the log again: it was queued, changed, or is over. */
  async refresh(run: string): Promise<void> {
    const { facts } = await headOfRun(this.#options.log, run);
    this.#takeIn(facts);
    this.#poke();
  }

  /**
   * Lets a run that nobody drives go on, or one of ours that was paused. Throws `conflict` for any other that is
   * driven, `invalid` for a sub-run.
   */
  async goOn(run: string, { by, why }: { by: string; why: "resume" | "adoption" }): Promise<void> {
    const { log } = this.#options;
    const { facts } = await headOfRun(log, run);
    if (facts.parent !== null) throw isSubRun(facts);
    this.#failures.delete(run);
    const driver = await drivenBy(run, this.#options);
    if (this.#working.has(run) && waitsForResume(facts)) return await appendForeign(log, run, (now) => goesOn(now, by));
    if (driver !== null || this.#working.has(run)) throw isDriven(run, driver ?? "the station");
    using _ = facts.queued === null ? this.admit(facts.owner) : null;
    await this.#enqueue(run, { by, why });
  }

  /** Null for a run that does not wait. */
  placeOf(facts: RunFacts): QueuePlace | null {
    if (facts.queued === null) return null;
    this.#places ??= placesIn(this.#state());
    return queuePlace(facts, this.#places.get(facts.run) ?? { position: null, waitsFor: "nothing" }, this.bounds);
  }

  view(): RunQueueView {
    const { runsMax, runsPerOwnerMax, sandboxesMax, memoryBytesMax } = this.bounds;
    const { taken } = this.#state();
    const bounds = { runsMax, runsPerOwnerMax, sandboxesMax, memoryBytesMax };
    return {
      ...queueRows([...this.#waiting.values()], (facts) => this.placeOf(facts)),
      atWork: { runs: this.#working.size, ...taken, ...bounds, draining: this.#isDraining },
    };
  }

  /** What sandboxes take now, with those that runs are about to make; and how many each owner has. */
  async taken(): Promise<Pick<TakenRoom, "byOwner" | "promisedBytes"> & Room> {
    this.#taken = await this.#options.room.taken();
    return { ...this.#state().taken, byOwner: this.#taken.byOwner, promisedBytes: this.#taken.promisedBytes };
  }

  /** Finds what waits, and what was driven by a process that died, and begins. */
  start(): void {
    this.#poke();
  }

  /** Starts nothing more, and takes nothing more. */
  drain(): void {
    this.#isDraining = true;
    this.#places = null;
  }

  /** Resolves when nothing is driven. */
  async idle(): Promise<void> {
    if (this.#working.size > 0) await this.#idle.promise;
  }

  /** Starts nothing more; what is driven is somebody else's to let go. */
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

  /** One look at a time; who asks meanwhile gets another one after it. */
  #poke(): void {
    if (this.#isPoked || this.#isClosed) return;
    this.#isPoked = true;
    this.#work = this.#work.then(async () => {
      this.#isPoked = false;
      // A log or a folder that cannot be read now may be readable soon.
      await this.#pass().catch((error: Error) => this.#options.notice(`the queue could not be looked at: ${error.message}`));
      this.#arm();
    });
  }

  async #pass(): Promise<void> {
    if (this.#lookedAtMs === null || performance.now() - this.#lookedAtMs >= LOOK_MS) await this.#look();
    while (!this.#isClosed) {
      await this.taken();
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

  /** What the log says, whoever wrote it: runs that wait, and those whose driver died. */
  async #look(): Promise<void> {
    const { log, notice } = this.#options;
    const { heads } = await log.heads({ prefix: runStream(""), open: true, limit: OPEN_RUNS_MAX });
    const open = new Map(heads.map((head) => [toRunHead(head).facts.run, toRunHead(head)]));
    // One that came, or went, since the log was asked.
    for (const run of this.#waiting.keys()) if (!open.has(run)) await this.#lookAt(run);
    for (const [run, head] of open) {
      if (this.#isClosed) return;
      if (this.#working.has(run) || (this.#failures.get(run) ?? 0) >= FAILURES_MAX) continue;
      if (head.facts.queued !== null) this.#takeIn(head.facts);
      else if (await mayAdopt(head, { ...this.#options, nowMs: this.#nowMs() }))
        await this.#enqueue(run, { by: "station", why: "adoption", ifSeq: head.seq }).catch((error: Error) =>
          notice(`${run} is left: ${error.message}`),
        );
    }
    this.#lookedAtMs = performance.now();
  }

  /** The run as it is now; null for one that does not wait any more. */
  async #lookAt(run: string): Promise<RunFacts | null> {
    const head = await this.#options.log.head(runStream(run));
    const facts = head === null ? null : toRunHead(head).facts;
    if (facts === null) this.#waiting.delete(run);
    else this.#takeIn(facts);
    return this.#waiting.has(run) ? facts : null;
  }

  async #begin(run: string): Promise<void> {
    const { drives, crashpoint } = this.#options;
    const before = this.#waiting.get(run);
    const facts = await this.#lookAt(run);
    // Somebody may have taken it, ended it, or changed what it waits for.
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
    if (failure !== null && !this.#isClosed) await this.#failed(run, failure.error);
    // Somebody may have let it go on while this process put away what it left.
    else await this.#lookAt(run).catch(() => undefined);
    if (this.#working.size === 0) {
      this.#idle.resolve();
      this.#idle = Promise.withResolvers();
    }
    this.#poke();
  }

  /** It is not over, and could not be driven: it waits for the next attempt. */
  async #failed(run: string, error: unknown): Promise<void> {
    const { notice } = this.#options;
    const times = (this.#failures.get(run) ?? 0) + 1;
    this.#failures.set(run, times);
    const afterMs = retryAfterMs(error, times);
    notice(`${run} could not be driven${afterMs === null ? "" : ", and is tried again"}: ${(error as Error).message}`);
    if (afterMs === null) return;
    const startAt = new Date(this.#nowMs() + afterMs).toISOString();
    // Where this fails, too, the next look finds it.
    await this.#enqueue(run, { by: "station", why: "retry", startAt }).catch((failed: Error) =>
      notice(`${run} is left: ${failed.message}`),
    );
  }

  /** `ifSeq`: only where nothing has happened since. */
  async #enqueue(run: string, asked: { by: string; why: QueuedFor; startAt?: string; ifSeq?: number }): Promise<void> {
    const { log, crashpoint } = this.#options;
    const { by, why, startAt = null, ifSeq } = asked;
    crashpoint("run.queued:before");
    await appendForeign(log, run, (facts, seq) => {
      return ifSeq === undefined || ifSeq === seq ? toQueue(facts, { by, why, startAt }) : [];
    });
    crashpoint("run.queued:after");
    await this.refresh(run);
  }
}
