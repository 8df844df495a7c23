import { setTimeout as delay } from "node:timers/promises";
import type { DrivenWaits, NewDrivenEvent } from "../../contract/driven-event.ts";
import { CaissonError } from "../../contract/error.ts";
import { ownedBy } from "../../contract/owner.ts";
import { duringTurn } from "../../lib/turns.ts";
import { type HeldLease, holdLease, LEASE_TTL_MS } from "../../log/hold-lease.ts";
import type { Log } from "../../log/log.ts";
import type { Crashpoint } from "../crashpoint.ts";
import { asCaissonError, nonEmpty } from "./drive-checks.ts";
import { type Folded, foldOn, storedForm, streamOf } from "./driven-log.ts";
import type { Decision, Effect, Kind, NewKindEvent, Waits } from "./kind.ts";
import { createWake, type Wake } from "./wake.ts";

/** A log that cannot take an outcome is asked again after this long, for as long as the thing is ours. */
const LOG_AGAIN_MS = 1_000;

export interface DriveOptions {
  log: Log;
  /** This process, as the holder of a lease. */
  owner: string;
  ownerGone: (owner: string) => boolean;
  crashpoint: Crashpoint;
  now: () => Date;
  /** Whether the run or the driven thing of a stream is over, or is not there at all. */
  isOver: (stream: string) => Promise<boolean>;
  /** Lets go of the thing; it stays as it is in the log. */
  signal: AbortSignal;
}

/** How driving a thing ended for this process: there is nothing to do for now, it is over, or another has it. */
export type DriveEnd = "waits" | "paused" | "ended" | "elsewhere";

/** What drives one thing, from taking its lease to letting go of it. */
export interface Drive {
  /** Rejects with `superseded` when another process took it over, and with what is wrong with the thing or its log. */
  readonly done: Promise<DriveEnd>;
  /** Resolves once it has only to wait for the time being, for its effects or altogether. */
  readonly quiet: Promise<void>;
  /** Something has changed in the log that may concern it. */
  poke(): void;
}

/**
 * Drives a thing until there is nothing to do for now: fold, decide, append, perform. `folded` may be what an earlier
 * drive left; it is brought up to date and stays so.
 */
export function startDrive<State, New extends NewKindEvent, Work extends Effect>(
  kind: Kind<State, New, Work>,
  id: string,
  folded: Folded<State>,
  options: DriveOptions,
): Drive {
  const wake = createWake();
  const done = driveHeld(kind, id, { ...options, folded, wake });
  const settled = done.then(
    () => undefined,
    () => undefined,
  );
  return { done, quiet: Promise.race([settled, wake.waited]), poke: wake.set };
}

async function driveHeld<State, New extends NewKindEvent, Work extends Effect>(
  kind: Kind<State, New, Work>,
  id: string,
  options: DriveOptions & { folded: Folded<State>; wake: Wake },
): Promise<DriveEnd> {
  const held = await holdLease(options.log, streamOf(kind, id), { ...options, ttlMs: LEASE_TTL_MS });
  if (held === null) return "elsewhere";
  await using lease = held;
  const letGo = AbortSignal.any([options.signal, lease.lost]);
  letGo.addEventListener("abort", options.wake.set);
  const driving = new Driving(kind, id, { ...options, held: lease, letGo });
  try {
    // It was removed since somebody asked for it to be driven: an event now would be a thing without a beginning.
    if ((await options.log.lastSeq(streamOf(kind, id))) === 0) return "ended";
    await foldOn(options.log, kind, id, options.folded);
    return await driving.untilNothingToDo();
  } finally {
    letGo.removeEventListener("abort", options.wake.set);
    await driving.abandon();
  }
}

interface Running {
  abort: AbortController;
  settled: Promise<void>;
}

/** A turn that took this long is followed by a rest as long, so that no thing has the process to itself. */
const SHORT_TURN_MS = 20;
const REST_MS_MAX = 500;

async function rest(busyMs: number, signal: AbortSignal): Promise<void> {
  if (busyMs < SHORT_TURN_MS) return;
  await delay(Math.min(busyMs, REST_MS_MAX), undefined, { signal }).catch(() => undefined);
}

/** A thing at work. All appends are made by one loop, one after the other. */
class Driving<State, New extends NewKindEvent, Work extends Effect> {
  readonly #kind: Kind<State, New, Work>;
  readonly #id: string;
  readonly #options: DriveOptions & { folded: Folded<State>; wake: Wake; held: HeldLease; letGo: AbortSignal };
  readonly #running = new Map<string, Running>();
  readonly #abandoned = new AbortController();
  #outcomes: { effect: Work; events: readonly New[] }[] = [];
  /** Whether the log has just confirmed that the thing is ours. */
  #isConfirmed = false;

  constructor(
    kind: Kind<State, New, Work>,
    id: string,
    options: DriveOptions & { folded: Folded<State>; wake: Wake; held: HeldLease; letGo: AbortSignal },
  ) {
    this.#kind = kind;
    this.#id = id;
    this.#options = options;
  }

  async untilNothingToDo(): Promise<DriveEnd> {
    const { folded, wake, letGo } = this.#options;
    for (;;) {
      letGo.throwIfAborted();
      await this.#recordOutcomes();
      if (folded.facts.finish !== null) return "ended";
      const now = this.#options.now();
      const sinceMs = performance.now();
      const decision: Decision<New, Work> = folded.facts.paused === null ? await this.#decide(now) : { effects: [] };
      if ("append" in decision) {
        const busyMs = performance.now() - sinceMs;
        await this.#appendDecided(decision);
        await rest(busyMs, letGo);
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

  /** Ends what is at work here without an outcome: whoever drives the thing next finds the intents. */
  async abandon(): Promise<void> {
    this.#abandoned.abort(new CaissonError("cancelled", `${this.#id} is driven by another process, or later`));
    await Promise.all([...this.#running.values()].map(({ settled }) => settled));
  }

  async #decide(now: Date): Promise<Decision<New, Work>> {
    const { state, facts, seq } = this.#options.folded;
    const turn = { stream: streamOf(this.#kind, this.#id), seq };
    const during = <Result>(work: () => Result): Result =>
      duringTurn(turn, () => {
        this.#options.crashpoint.turn?.(this.#kind.name);
        return work();
      });
    return await during(() => this.#kind.decide(state, { facts, now, during }));
  }

  /** A kind that waits for a time that has come would be asked for ever. */
  #checkWaits({ waits }: { waits?: Waits }, now: Date): void {
    if (waits?.due === undefined || waits.due > now) return;
    throw new CaissonError("internal", `the ${this.#kind.name} ${this.#id} waits for a time that has come`);
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

  /** Where somebody else said something first, that is taken in and it is decided again. */
  async #appendOrTakeIn(events: readonly (New | NewDrivenEvent)[], { isRetold = false } = {}): Promise<boolean> {
    const { log, folded, held, crashpoint, letGo } = this.#options;
    letGo.throwIfAborted();
    const stored = storedForm(this.#kind, events);
    for (const { type } of stored) crashpoint(`${type}:before`);
    try {
      await log.append(streamOf(this.#kind, this.#id), stored, {
        expectedSeq: folded.seq,
        lease: held.lease,
        signal: letGo,
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

  /** An outcome is a fact, whatever others said meanwhile: it is appended until the log has it. */
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
        outcome.events = this.#kind.failed(outcome.effect, error);
        return await this.#appendOrTakeIn(outcome.events);
      }
      if (error.details?.log !== true) throw error;
      await delay(LOG_AGAIN_MS, undefined, { signal: this.#options.letGo });
      return false;
    }
  }

  /** Starts what is not at work yet and gives the streams that the rest waits for. */
  async #begin(effects: readonly Work[]): Promise<string[]> {
    const children: string[] = [];
    for (const effect of effects) {
      // It may have come to its end since it was decided.
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

  /** Nothing is done outside by a process that another has replaced: the log is asked right before. */
  async #confirm(): Promise<void> {
    const { log, held, letGo } = this.#options;
    letGo.throwIfAborted();
    if (!this.#isConfirmed) await log.renew(held.lease, { ttlMs: LEASE_TTL_MS });
    this.#isConfirmed = true;
  }

  #perform(effect: Work): void {
    const { folded, letGo, wake } = this.#options;
    const abort = new AbortController();
    if (effect.cancel === true) abort.abort(new CaissonError("cancelled", `${effect.id} was cancelled`));
    const given = AbortSignal.any([letGo, this.#abandoned.signal]);
    const signal = AbortSignal.any([given, abort.signal]);
    const settled = (async () => {
      let events: readonly New[];
      try {
        events = await this.#kind.perform(effect, { facts: folded.facts, signal, isCancelled: () => abort.signal.aborted });
      } catch (error) {
        if (given.aborted) return;
        events = this.#kind.failed(abort.signal.aborted ? { ...effect, cancel: true } : effect, asCaissonError(error));
      }
      this.#running.delete(effect.id);
      this.#outcomes.push({ effect, events });
      wake.set();
    })();
    this.#running.set(effect.id, { abort, settled });
  }

  /** Says in the log what it waits for, unless that is said already. False: something else was said first. */
  async #leaveWaiting(decision: { waits?: Waits }, children: readonly string[]): Promise<boolean> {
    const { due, person = null, signal = null } = decision.waits ?? {};
    const waits: DrivenWaits = { due: due?.toISOString() ?? null, children: [...new Set(children)].sort(), person, signal };
    if (waits.due === null && children.length === 0 && person === null && signal === null) {
      throw new CaissonError("internal", `the ${this.#kind.name} ${this.#id} waits for nothing`);
    }
    // Time may have passed since it was decided.
    if (due !== undefined && due <= this.#options.now()) return false;
    if (JSON.stringify(this.#options.folded.facts.waits) === JSON.stringify(waits)) return true;
    return await this.#appendOrTakeIn([{ type: "driven.waiting", data: waits }]);
  }
}
