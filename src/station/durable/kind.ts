import type { z } from "zod";
import type { JobEvent, JobFinish } from "../../contract/durable/durable-event.ts";
import type { JobFacts } from "../../contract/durable/durable-job.ts";
import type { CaissonError } from "../../contract/error/error.ts";
import type { AnyEventDefinition } from "../../contract/event/define-event.ts";
import type { EventFamily } from "../../contract/event/event-family.ts";

/**
 * A kind of durable job: a fold of its stream in the log that is driven to its end, even if drivers die on the way
 * (ADR 41). A kind defines its jobs; the driver provides leases, appends, timers and recovery (`createDriver`), and
 * `createJobs` the verbs that all kinds share.
 *
 * To add a kind: declare its events in `src/contract`, with a golden file each, and their family with `jobFamily`; add
 * a line to `projections` in `src/log/projection.ts`, which gives it heads; write `apply` and `decide` as pure
 * functions; pass the kind to the driver in `src/compose/durable-jobs.ts`.
 *
 *     const ships: Kind<ShipState, NewShipEvent, ShipEffect> = {
 *       name: "ship", prefix: "ship/", idPrefix: "ship", events: shipEvents,
 *       empty: () => ({ pushed: null }),
 *       apply: (state, event) => applyToShip(state, event),
 *       decide: (state, { facts }) =>
 *         state.pushed === null
 *           ? state.push === null
 *             ? { append: [{ type: "ship.push_started", data: { attempt: 1 } }] }             // the intent …
 *             : { effects: [{ id: `${facts.id}/push/1`, branch: state.push.branch }] }          // … then the effect …
 *           : { end: { finish: "completed", text: null } },
 *       perform: async (effect) => [{ type: "ship.pushed", data: await push(effect) }],       // … and its outcome.
 *       describeFailure: (effect, error) => [{ type: "ship.push_failed", data: { code: error.code } }],
 *     };
 */
export interface Kind<State = unknown, New extends NewKindEvent = NewKindEvent, Work extends Effect = Effect> {
  /** The name that people use, in lower case: `workflow`. */
  readonly name: string;
  /** The prefix of its streams: `workflow/`. */
  readonly prefix: string;
  /** The prefix of its ids: `wf` for `wf_k3v7q2m5x4ab`. */
  readonly idPrefix: string;
  /** The command that lists its jobs: `caisson workflow ls`. */
  readonly listedBy: string;
  /** Created by `jobFamily`; all events of the stream are read with it. */
  readonly events: EventFamily<AnyEventDefinition>;
  /** Returns the state of a stream without events. */
  empty(): State;
  /**
   * Folds one event into the state, in place. Also receives the shared events (`driven.created` …) and may ignore them:
   * their content is in `facts`.
   */
  apply(state: State, event: ReadKindEvent): void;
  /**
   * Decides the next step from the state alone: the same state and time give the same decision. A requested
   * cancellation is in `facts.cancelRequested`; the kind carries it out (effects with `cancel`, then `end`). A kind
   * that computes something elsewhere returns a promise: nothing else happens to the job until it resolves. The kind
   * then makes its decision in `during`, so that a station knows whose turn it is.
   */
  decide(
    state: State,
    look: { facts: Readonly<JobFacts>; now: Date; during?: <Result>(work: () => Result) => Result },
  ): JobDecision<New, Work> | Promise<JobDecision<New, Work>>;
  /**
   * Performs an effect whose intent is in the log. Returns the events that describe the outcome, at least one. If a
   * process dies before the outcome is in the log, another process calls this again with the same id, so it first looks
   * for existing results of that id. An error it throws goes to `describeFailure`. It gives up when the signal aborts.
   * For an effect with `cancel`, the signal is aborted from the start, and the call must end any work that an earlier
   * call started.
   */
  perform(effect: Work, context: EffectContext): Promise<readonly New[]>;
  /**
   * Returns the events for a failed effect. The effect has `cancel` set even if it was cancelled while it ran. Only
   * `decide` can retry: the driver never does.
   */
  describeFailure(effect: Work, error: CaissonError): readonly New[];
}

// biome-ignore lint/suspicious/noExplicitAny: only the kind itself knows the types of its state and events.
export type AnyKind = Kind<any, any, any>;

/** A new event of a kind. */
export interface NewKindEvent {
  type: string;
  data: object;
}

/** An event to fold: it belongs to the kind's family, and is already in its current version. */
export type ReadKindEvent = JobEvent | { type: string; version: number; at: string; data: z.core.util.JSONType };

export interface Effect {
  /**
   * Every process computes the same id for the same job, step and attempt, and ids are never reused. After a crash we
   * use the id to find what the effect created outside.
   */
  readonly id: string;
  /**
   * The stream of a run or job that must end before the effect is performed. Until then the effect is not in memory.
   */
  readonly after?: string;
  /** Cancels the effect: aborts its signal, and ends the work that it started outside. */
  readonly cancel?: boolean;
}

export interface EffectContext {
  facts: Readonly<JobFacts>;
  signal: AbortSignal;
  /** Returns whether the signal means a cancellation, and not that this process releases the job. */
  isCancelled(): boolean;
}

export type JobDecision<New extends NewKindEvent, Work extends Effect> =
  /** New facts, including intents; at least one. The kind decides again once they are in the log. */
  | {
      append: readonly New[];
      /**
       * Compacts the log of a job that never ends: the events contain the job's complete state and replace its whole
       * log. Folding them on top of the existing state must give the same result as folding them alone.
       */
      isRetelling?: boolean;
    }
  /**
   * Everything in progress: what the job waits for, and all effects with an intent but no outcome in the log, even
   * those that another process started. Effects that already run here are left alone.
   */
  | { effects: readonly Work[]; waits?: Waits }
  | { end: { finish: JobFinish; text: string | null } };

/** What can continue a job besides the outcomes of its effects. */
export interface Waits {
  /** The time to decide again. */
  due?: Date;
  /** The decision that a person has to make, for lists and for waiters. */
  person?: string;
  /** The event that another process or person has to append with `say`. */
  signal?: string;
}
