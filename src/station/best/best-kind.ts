import type { NewBestEvent } from "../../contract/best/best-event.ts";
import type { CaissonError } from "../../contract/error/error.ts";
import { unreachable } from "../../lib/unreachable.ts";
import type { EffectContext, Kind } from "../durable/kind.ts";
import { bestKindFacts } from "./best-kind-facts.ts";
import { type AttemptState, applyToBest, type BestState, emptyBest } from "./best-state.ts";
import { type BestEffect, decideBest } from "./decide-best.ts";
import type { Verdict } from "./judge-attempts.ts";
import type { Grade } from "./parse-grade.ts";

type Made<Type extends NewBestEvent["type"]> = Extract<NewBestEvent, { type: Type }>["data"];

/** The best-of, its owner, and the signal to stop. */
export interface BestContext {
  id: string;
  owner: string;
  signal: AbortSignal;
}

/** The work of a best-of outside the log. Each call may be repeated, even by another process. */
export interface BestWork {
  /** Starts the run of an attempt, or finds the one that an earlier call started. */
  start(
    state: Readonly<BestState>,
    attempt: AttemptState,
    context: BestContext & { effect: string },
  ): Promise<Pick<Made<"best.attempted">, "run" | "session">>;
  /** Resolves with how a run ended; stops it if `isCancelled` is set. */
  outcome(run: string, options: { isCancelled: boolean }): Promise<Omit<Made<"best.attempt_ended">, "attempt">>;
  /** Runs the grader on a copy of the attempt's files. */
  grade(state: Readonly<BestState>, attempt: AttemptState, context: BestContext): Promise<Grade>;
  judge(state: Readonly<BestState>, context: BestContext): Promise<Verdict>;
  /** Makes the attempt the one that `diff` and `apply` mean, and labels all by their places. */
  promote(state: Readonly<BestState>, attempt: AttemptState, context: BestContext): Promise<void>;
}

const TEXT_CHARACTERS_MAX = 4000;

export function createBestKind(work: BestWork): Kind<BestState, NewBestEvent, BestEffect> {
  return {
    ...bestKindFacts,
    empty: emptyBest,
    apply: applyToBest,
    decide: decideBest,
    perform: (effect, context) => perform(effect, context, work),
    describeFailure: failureEvents,
  };
}

async function perform(effect: BestEffect, { facts, signal, isCancelled }: EffectContext, work: BestWork): Promise<NewBestEvent[]> {
  const { what, state } = effect;
  const context = { id: facts.id, owner: facts.owner, signal };
  if (what !== "watch") signal.throwIfAborted();
  switch (what) {
    case "start": {
      const { attempt } = ofAttempt(effect);
      return [
        { type: "best.attempted", data: { attempt, ...(await work.start(state, ofAttempt(effect), { ...context, effect: effect.id })) } },
      ];
    }
    case "watch": {
      const { attempt, run } = ofAttempt(effect);
      return [{ type: "best.attempt_ended", data: { attempt, ...(await work.outcome(run ?? "", { isCancelled: isCancelled() })) } }];
    }
    case "grade": {
      const { attempt } = ofAttempt(effect);
      return [{ type: "best.graded", data: { attempt, ...(await work.grade(state, ofAttempt(effect), context)) } }];
    }
    case "judge": {
      const { opinions, costUsd } = await work.judge(state, context);
      const text = opinions === null ? "The judge gave no usable answer." : null;
      return [{ type: "best.judged", data: { opinions, costUsd, text } }];
    }
    case "promote": {
      const { attempt, run, session } = ofAttempt(effect);
      await work.promote(state, ofAttempt(effect), context);
      return [{ type: "best.promoted", data: { attempt, run: run ?? "", session: session ?? "" } }];
    }
    default:
      return unreachable(what);
  }
}

/** A failed attempt is out of the race; a failed judge has no opinion. Only a failed promotion fails the best-of. */
function failureEvents({ what, attempt }: BestEffect, error: CaissonError): NewBestEvent[] {
  const text = error.sentences.slice(0, TEXT_CHARACTERS_MAX);
  if (what === "judge") return [{ type: "best.judged", data: { opinions: null, costUsd: 0, text } }];
  if (what === "promote" || attempt === null) return [{ type: "best.failed", data: { code: error.code, text } }];
  return [{ type: "best.attempt_failed", data: { attempt: attempt.attempt, text } }];
}

function ofAttempt({ attempt }: BestEffect): AttemptState {
  if (attempt === null) throw new Error("the effect has no attempt");
  return attempt;
}
