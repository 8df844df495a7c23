import type { z } from "zod";
import type { AnyEventDefinition } from "../../contract/define-event.ts";
import type { DrivenFacts } from "../../contract/driven.ts";
import type { DrivenEvent, DrivenFinish } from "../../contract/driven-event.ts";
import type { CaissonError } from "../../contract/error.ts";
import type { EventFamily } from "../../contract/event-family.ts";

/**
 * A kind of driven thing: something that is a fold of its stream in the log and that is driven to its end, whoever dies
 * on the way (ADR 41). A kind says what it is; leases, appends, timers, recovery and the verbs that all kinds share are
 * the driver's (`createDriver`, `createDrivenVerbs`).
 *
 * To add a kind: declare its events in `src/contract` (a golden file each) and their family by `drivenFamily`; add a
 * line to `drivenKinds` in `src/log/projection.ts`, which gives it heads; write `apply` and `decide` as pure functions;
 * give the kind to the driver in `src/compose/driven.ts`.
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
 *       failed: (effect, error) => [{ type: "ship.push_failed", data: { code: error.code } }],
 *     };
 */
export interface Kind<State = unknown, New extends NewKindEvent = NewKindEvent, Work extends Effect = Effect> {
  /** Lower case, as people call it: `workflow`. */
  readonly name: string;
  /** Of its streams: `workflow/`. */
  readonly prefix: string;
  /** Of its ids: `wf` for `wf_k3v7q2m5x4ab`. */
  readonly idPrefix: string;
  /** By what users list them: `caisson workflow ls`. */
  readonly listedBy: string;
  /** Made by `drivenFamily`: all events of the stream are read through it. */
  readonly events: EventFamily<AnyEventDefinition>;
  /** The state of a stream in which nothing happened yet. */
  empty(): State;
  /**
   * Folds one event into the state, in place. The shared ones (`driven.created` …) come by here as well and may be
   * ignored: what they say is in `facts`.
   */
  apply(state: State, event: ReadKindEvent): void;
  /**
   * What follows from the state, and from nothing else: the same state and time give the same decision. A cancellation
   * that was asked for is in `facts.cancelRequested`; the kind brings it about (effects with `cancel`, then `end`). A
   * kind that has something computed elsewhere for it gives a promise: nothing else happens to the thing meanwhile. It
   * then does what it decides afterwards by `during`, so that a station knows whose turn it is.
   */
  decide(
    state: State,
    look: { facts: Readonly<DrivenFacts>; now: Date; during?: <Result>(work: () => Result) => Result },
  ): Decision<New, Work> | Promise<Decision<New, Work>>;
  /**
   * Does an effect whose intent is in the log, and gives the events that say what came of it, at least one. It may be
   * called again for the same id, by another process, when the one before died before the outcome was in the log: so it
   * first looks for what is there already by that id. What it throws becomes `failed`. It gives up when the signal
   * aborts; for an effect with `cancel` the signal is aborted from the beginning, and it ends what an earlier call may
   * have begun.
   */
  perform(effect: Work, context: EffectContext): Promise<readonly New[]>;
  /**
   * What an effect that failed comes to; it has `cancel` also where that came while it was at work. Whether it is tried
   * again is for `decide` to say: the driver never does.
   */
  failed(effect: Work, error: CaissonError): readonly New[];
}

// biome-ignore lint/suspicious/noExplicitAny: what a kind's state and events are is known to the kind alone.
export type AnyKind = Kind<any, any, any>;

/** An event of a kind as it is handed in. */
export interface NewKindEvent {
  type: string;
  data: object;
}

/** An event as it is folded: one of the kind's family, already of the current version. */
export type ReadKindEvent = DrivenEvent | { type: string; version: number; at: string; data: z.core.util.JSONType };

export interface Effect {
  /**
   * The same for the same thing, step and attempt, in whatever process, and never used again for another: what is made
   * outside is found by it after a crash.
   */
  readonly id: string;
  /** Performed once this stream's thing (a run, another driven thing) is over. Nothing is held in memory until then. */
  readonly after?: string;
  /** To be given up: its signal is aborted, and what it began outside is ended. */
  readonly cancel?: boolean;
}

export interface EffectContext {
  facts: Readonly<DrivenFacts>;
  signal: AbortSignal;
  /** Whether the signal says that it is cancelled, rather than that this process lets go of it for another. */
  isCancelled(): boolean;
}

export type Decision<New extends NewKindEvent, Work extends Effect> =
  /** Facts that follow, intents among them; not empty. It is decided again once they are in the log. */
  | {
      append: readonly New[];
      /**
       * They tell all that is known of it and take the place of its whole log, for a thing that goes on for ever.
       * Folded on top of what was there, they have to come to the same as by themselves.
       */
      isRetelling?: boolean;
    }
  /**
   * Everything that is under way: effects whose intent is in the log and whose outcome is not, whoever began them, and
   * what is waited for besides. Those that are at work here already are left alone.
   */
  | { effects: readonly Work[]; waits?: Waits }
  | { end: { finish: DrivenFinish; text: string | null } };

/** What may let a thing go on besides the outcomes of its effects. */
export interface Waits {
  /** It is decided again at this time. */
  due?: Date;
  /** What a person has to decide, for lists and for whoever waits for it. */
  person?: string;
  /** What somebody else has to say: an event that they append by `say`. */
  signal?: string;
}
