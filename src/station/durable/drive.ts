import { setTimeout as delay } from "node:timers/promises";
import type { JobWaits, NewJobEvent } from "../../contract/durable/durable-event.ts";
import { CaissonError } from "../../contract/error/error.ts";
import { ownedBy } from "../../contract/token/owner.ts";
import type { Crashpoint } from "../../lib/crashpoint.ts";
import { ignore } from "../../lib/failures.ts";
import { duringTurn } from "../../lib/turns.ts";
import { type HeldLease, holdLease, LEASE_TTL_MS } from "../../log/hold-lease.ts";
import type { Log } from "../../log/log.ts";
import { asCaissonError, nonEmpty } from "./drive-checks.ts";
import { type Folded, foldOn, storedForm, streamOf } from "./durable-log.ts";
import type { Effect, JobDecision, Kind, NewKindEvent, Waits } from "./kind.ts";
import { createWake, type Wake } from "./wake.ts";

/** The pause between attempts to append an outcome while the log fails. We retry for as long as we hold the lease. */
const LOG_AGAIN_MS = 1_000;

export interface DriveOptions {
  log: Log;
  /** This process as a lease holder. */
  holder: string;
  holderGone: (holder: string) => boolean;
  crashpoint: Crashpoint;
  now: () => Date;
  /** Returns whether the run or job of a stream has ended or does not exist. */
  isOver: (stream: string) => Promise<boolean>;
  /** Releases the job, which stays in the log as it is. */
  signal: AbortSignal;
}

/** Why this process stopped driving a job: the job waits or is paused, it has ended, or another process drives it. */
export type DriveEnd = "waits" | "paused" | "ended" | "elsewhere";

/** The drive of one job, from taking its lease to releasing it. */
export interface Drive {
  /** Rejects with `superseded` if another process took over, and with any defect of the job or its log. */
  readonly done: Promise<DriveEnd>;
  /** Resolves when the job first has to wait, or when the drive is done. */
  readonly quiet: Promise<void>;
  /** Reports a change in the log that may concern the job. */
  poke(): void;
}

/**
 * Drives a job until there is nothing to do for now: fold, decide, append, perform. `folded` may come from an earlier
 * drive; it is brought up to date and stays so.
 */
export function startDrive<State, New extends NewKindEvent, Work extends Effect>(
  kind: Kind<State, New, Work>,
  id: string,
  folded: Folded<State>,
  options: DriveOptions,
): Drive {
  const wake = createWake();
  const done = driveHeld(kind, id, { ...options, folded, wake });
  const settled = ignore(done, "the caller of `done` gets it");
  return { done, quiet: Promise.race([settled.then(() => undefined), wake.waited]), poke: wake.set };
}

async function driveHeld<State, New extends NewKindEvent, Work extends Effect>(
  kind: Kind<State, New, Work>,
  id: string,
  options: DriveOptions & { folded: Folded<State>; wake: Wake },
): Promise<DriveEnd> {
  const held = await holdLease(options.log, streamOf(kind, id), { ...options, ttlMs: LEASE_TTL_MS });
  if (held === null) return "elsewhere";
  await using lease = held;
  const releaseSignal = AbortSignal.any([options.signal, lease.lost]);
  releaseSignal.addEventListener("abort", options.wake.set);
  const driving = new Driving(kind, id, { ...options, held: lease, releaseSignal });
  try {
    // The job was removed after the drive was requested. Appending now would create a job without its first event.
    if ((await options.log.lastSeq(streamOf(kind, id))) === 0) return "ended";
    await foldOn(options.log, kind, id, options.folded);
    return await driving.untilNothingToDo();
  } finally {
    releaseSignal.removeEventListener("abort", options.wake.set);
    await driving.abandon();
  }
}

interface Running {
  abort: AbortController;
  settled: Promise<void>;
}

/** A turn longer than this is followed by a pause of the same length, so that no job monopolizes the process. */
const SHORT_TURN_MS = 20;
const REST_MS_MAX = 500;

async function rest(busyMs: number, signal: AbortSignal): Promise<void> {
  if (busyMs < SHORT_TURN_MS) return;
  await ignore(delay(Math.min(busyMs, REST_MS_MAX), undefined, { signal }), "the caller checks the signal");
}

/** A job that is being driven. A single loop makes all appends, one after the other. */
class Driving<State, New extends NewKindEvent, Work extends Effect> {
  readonly #kind: Kind<State, New, Work>;
  readonly #id: string;
  readonly #options: DriveOptions & { folded: Folded<State>; wake: Wake; held: HeldLease; releaseSignal: AbortSignal };
  readonly #running = new Map<string, Running>();
  readonly #abandoned = new AbortController();
  #outcomes: { effect: Work; events: readonly New[] }[] = [];
  /** Whether the log has just confirmed that we hold the lease. */
  #isConfirmed = false;

  constructor(
    kind: Kind<State, New, Work>,
    id: string,
    options: DriveOptions & { folded: Folded<State>; wake: Wake; held: HeldLease; releaseSignal: AbortSignal },
  ) {
    this.#kind = kind;
    this.#id = id;
    this.#options = options;
  }

  async untilNothingToDo(): Promise<DriveEnd> {
    const { folded, wake, releaseSignal } = this.#options;
    for (;;) {
      releaseSignal.throwIfAborted();
      await this.#recordOutcomes();
      if (folded.facts.finish !== null) return "ended";
      const now = this.#options.now();
      const sinceMs = performance.now();
      const decision: JobDecision<New, Work> = folded.facts.paused === null ? await this.#decide(now) : { effects: [] };
      if ("append" in decision) {
        const busyMs = performance.now() - sinceMs;
        await this.#appendDecided(decision);
        await rest(busyMs, releaseSignal);
      } else if ("end" in decision) await this.#appendOrTakeIn([{ type: "driven.ended", data: decision.end }]);
      else {
        this.#checkWaits(decision, now);
        const children = await this.#begin(decision.effects);
        if (this.#outcomes.length > 0) continue;
        if (this.#running.size === 0) {
          if (folded.facts.paused !== null) return "paused";
          if (await this.#leaveWaiting(decision, children)) return "waits";
          continue;
        }
        await wake.until(decision.waits?.due, this.#options.now);
        this.#isConfirmed = false;
        await this.#takeIn();
      }
    }
  }

  /** Stops the work in this process without recording an outcome: the next driver finds the intents. */
  async abandon(): Promise<void> {
    this.#abandoned.abort(new CaissonError("cancelled", `${this.#id} continues in another process, or later`));
    await Promise.all([...this.#running.values()].map(({ settled }) => settled));
  }

  async #decide(now: Date): Promise<JobDecision<New, Work>> {
    const { state, facts, seq } = this.#options.folded;
    const turn = { stream: streamOf(this.#kind, this.#id), seq };
    const during = <Result>(work: () => Result): Result =>
      duringTurn(turn, () => {
        this.#options.crashpoint.turn?.(this.#kind.name);
        return work();
      });
    return await during(() => this.#kind.decide(state, { facts, now, during }));
  }

  /** Rejects a due time in the past, because the loop would never end. */
  #checkWaits({ waits }: { waits?: Waits }, now: Date): void {
    if (waits?.due === undefined || waits.due > now) return;
    throw new CaissonError("internal", `the ${this.#kind.name} ${this.#id} waits for a time that has passed`);
  }

  async #takeIn(): Promise<void> {
    await foldOn(this.#options.log, this.#kind, this.#id, this.#options.folded);
  }

  async #appendDecided({ append, isRetelling = false }: { append: readonly New[]; isRetelling?: boolean }): Promise<void> {
    const events = nonEmpty(this.#kind, append);
    if (!isRetelling) return void (await this.#appendOrTakeIn(events));
    const { id, title, owner, parent, createdAt } = this.#options.folded.facts;
    const created = { type: "driven.created" as const, data: { id, title, parent, createdAt, ...ownedBy(owner) } };
    await this.#appendOrTakeIn([created, ...events], { isRetold: true });
  }

  /** Returns false if another writer appended first. Its events are folded, and the kind decides again. */
  async #appendOrTakeIn(events: readonly (New | NewJobEvent)[], { isRetold = false } = {}): Promise<boolean> {
    const { log, folded, held, crashpoint, releaseSignal } = this.#options;
    releaseSignal.throwIfAborted();
    const stored = storedForm(this.#kind, events);
    for (const { type } of stored) crashpoint(`${type}:before`);
    try {
      await log.append(streamOf(this.#kind, this.#id), stored, {
        expectedSeq: folded.seq,
        lease: held.lease,
        signal: releaseSignal,
        ...(isRetold && { isRetold }),
      });
    } catch (error) {
      if (!(error instanceof CaissonError) || error.code !== "conflict") throw error;
      if ((await log.lastSeq(streamOf(this.#kind, this.#id))) === 0)
        throw new CaissonError("superseded", `the ${this.#kind.name} ${this.#id} was removed`, { cause: error });
      await this.#takeIn();
      return false;
    }
    for (const { type } of stored) crashpoint(`${type}:after`);
    this.#isConfirmed = true;
    await this.#takeIn();
    return true;
  }

  /** Retries until the log has every outcome. Outcomes are facts, so events of other writers never invalidate them. */
  async #recordOutcomes(): Promise<void> {
    for (let outcome = this.#outcomes[0]; outcome !== undefined; outcome = this.#outcomes[0]) {
      this.#options.crashpoint(`${this.#kind.name}.effect:after`);
      if (await this.#record(outcome)) this.#outcomes.shift();
    }
  }

  async #record(outcome: { effect: Work; events: readonly New[] }): Promise<boolean> {
    try {
      return await this.#appendOrTakeIn(nonEmpty(this.#kind, outcome.events));
    } catch (error) {
      if (!(error instanceof CaissonError)) throw error;
      if (error.code === "too_large") {
        outcome.events = this.#kind.describeFailure(outcome.effect, error);
        return await this.#appendOrTakeIn(outcome.events);
      }
      if (error.details?.log !== true) throw error;
      await delay(LOG_AGAIN_MS, undefined, { signal: this.#options.releaseSignal });
      return false;
    }
  }

  /** Starts the effects that are not running yet, and returns the streams that the others wait for. */
  async #begin(effects: readonly Work[]): Promise<string[]> {
    const children: string[] = [];
    for (const effect of effects) {
      // The effect may have finished since the decision.
      if (this.#outcomes.some((outcome) => outcome.effect.id === effect.id)) continue;
      const running = this.#running.get(effect.id);
      if (running !== undefined) {
        if (effect.cancel === true) running.abort.abort(new CaissonError("cancelled", `${effect.id} was cancelled`));
        continue;
      }
      if (effect.after !== undefined && effect.cancel !== true && !(await this.#options.isOver(effect.after))) {
        children.push(effect.after);
        continue;
      }
      await this.#confirm();
      this.#options.crashpoint(`${this.#kind.name}.effect:before`);
      this.#perform(effect);
    }
    return children;
  }

  /** Confirms the lease right before an effect: a process that was replaced must not act outside. */
  async #confirm(): Promise<void> {
    const { log, held, releaseSignal } = this.#options;
    releaseSignal.throwIfAborted();
    if (!this.#isConfirmed) await log.renew(held.lease, { ttlMs: LEASE_TTL_MS });
    this.#isConfirmed = true;
  }

  #perform(effect: Work): void {
    const { folded, releaseSignal, wake } = this.#options;
    const abort = new AbortController();
    if (effect.cancel === true) abort.abort(new CaissonError("cancelled", `${effect.id} was cancelled`));
    const stopSignal = AbortSignal.any([releaseSignal, this.#abandoned.signal]);
    const signal = AbortSignal.any([stopSignal, abort.signal]);
    const settled = (async () => {
      let events: readonly New[];
      try {
        events = await this.#kind.perform(effect, { facts: folded.facts, signal, isCancelled: () => abort.signal.aborted });
      } catch (error) {
        if (stopSignal.aborted) return;
        events = this.#kind.describeFailure(abort.signal.aborted ? { ...effect, cancel: true } : effect, asCaissonError(error));
      }
      this.#running.delete(effect.id);
      this.#outcomes.push({ effect, events });
      wake.set();
    })();
    this.#running.set(effect.id, { abort, settled });
  }

  /**
   * Records in the log what the job waits for, unless it is recorded already. Returns false if the kind must decide
   * again.
   */
  async #leaveWaiting(decision: { waits?: Waits }, children: readonly string[]): Promise<boolean> {
    const { due, person = null, signal = null } = decision.waits ?? {};
    const waits: JobWaits = { due: due?.toISOString() ?? null, children: [...new Set(children)].sort(), person, signal };
    if (waits.due === null && children.length === 0 && person === null && signal === null) {
      throw new CaissonError("internal", `the ${this.#kind.name} ${this.#id} waits for nothing`);
    }
    // The due time may have passed since the decision.
    if (due !== undefined && due <= this.#options.now()) return false;
    const isRecorded = () => JSON.stringify(this.#options.folded.facts.waits) === JSON.stringify(waits);
    // Reading our own event back may have folded later ones, after which the job no longer waits.
    return isRecorded() || ((await this.#appendOrTakeIn([{ type: "driven.waiting", data: waits }])) && isRecorded());
  }
}
