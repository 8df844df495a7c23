import { createHash } from "node:crypto";
import type { CaissonError } from "../../contract/error/error.ts";
import type { NewMergeEvent } from "../../contract/merge/merge-event.ts";
import { idFrom } from "../../lib/new-id.ts";
import { unreachable } from "../../lib/unreachable.ts";
import type { EffectContext, Kind } from "../durable/kind.ts";
import { decideMerge, type MergeEffect } from "./decide-merge.ts";
import { mergeKindFacts } from "./merge-kind-facts.ts";
import { applyToMerge, emptyMerge, type MergeConflict, type MergeState } from "./merge-state.ts";

type Made<Type extends NewMergeEvent["type"]> = Extract<NewMergeEvent, { type: Type }>["data"];

/** The merge, its owner, and the signal to stop. */
export interface MergeContext {
  id: string;
  owner: string;
  signal: AbortSignal;
}

/**
 * The work of a merge outside the log. Each call may be repeated, even by another process: a session that it creates
 * has an id derived from the merge, and an incomplete one is created again.
 */
export interface MergeWork {
  plan(state: Readonly<MergeState>, context: MergeContext): Promise<Made<"merge.planned">>;
  step(state: Readonly<MergeState>, session: string, context: MergeContext): Promise<Pick<Made<"merge.step_ended">, "merged" | "conflict">>;
  /** Creates a session with the conflict and, for an agent, the run that resolves it there. */
  offer(
    state: Readonly<MergeState>,
    conflict: Readonly<MergeConflict>,
    how: MergeContext & { session: string; effect: string },
  ): Promise<{ run: string | null }>;
  /** Resolves with null if the conflict is resolved, and otherwise with the reason. */
  check(state: Readonly<MergeState>, conflict: Readonly<MergeConflict>, context: MergeContext): Promise<string | null>;
  /** Resolves with the session that has the result. */
  publish(state: Readonly<MergeState>, context: MergeContext): Promise<string>;
  /** Resolves with the sessions that could not be removed. */
  cleanUp(sessions: readonly string[]): Promise<string[]>;
}

export function createMergeKind(work: MergeWork): Kind<MergeState, NewMergeEvent, MergeEffect> {
  return {
    ...mergeKindFacts,
    empty: emptyMerge,
    apply: applyToMerge,
    decide: decideMerge,
    perform: (effect, context) => perform(effect, context, work),
    describeFailure: failureEvents,
  };
}

/** Returns the id of the session that a merge creates for a purpose; the same in every process. */
export function sessionFor(merge: string, what: string): string {
  return idFrom("ses", createHash("sha256").update(`${merge}/${what}`).digest());
}

async function perform({ id: effect, what, state }: MergeEffect, effectContext: EffectContext, work: MergeWork): Promise<NewMergeEvent[]> {
  const { id, owner } = effectContext.facts;
  const context = { id, owner, signal: effectContext.signal };
  const { step, conflict } = state;
  if (what !== "cleanup") effectContext.signal.throwIfAborted();
  switch (what) {
    case "plan":
      return [{ type: "merge.planned", data: await work.plan(state, context) }];
    case "step": {
      const session = sessionFor(id, `step/${step}`);
      return [{ type: "merge.step_ended", data: { step, session, ...(await work.step(state, session, context)) } }];
    }
    case "offer": {
      const { attempt } = theConflict(conflict);
      const session = sessionFor(id, `offer/${step}/${attempt}`);
      const { run } = await work.offer(state, theConflict(conflict), { ...context, session, effect });
      return [{ type: "merge.offered", data: { step, attempt, session, run } }];
    }
    case "check": {
      const why = await work.check(state, theConflict(conflict), context);
      return [checkedEvent(state, { why: why?.slice(0, 2000) ?? null, hopeless: false })];
    }
    case "publish":
      return [{ type: "merge.published", data: { session: await work.publish(state, context) } }];
    case "cleanup":
      return [{ type: "merge.cleaned_up", data: { left: await work.cleanUp(sessionsOf(id, state)) } }];
    default:
      return unreachable(what);
  }
}

/** Returns every session that the merge may have created, even if no event recorded it. */
function sessionsOf(id: string, { made: sessions, step }: Readonly<MergeState>): string[] {
  const steps = Array.from({ length: step }, (_, index) => index + 1);
  const attempts = Array.from({ length: sessions.length + 1 }, (_, index) => index + 1);
  const named = steps.flatMap((each) => [
    sessionFor(id, `step/${each}`),
    ...attempts.map((attempt) => sessionFor(id, `offer/${each}/${attempt}`)),
  ]);
  return [...new Set([...sessions, ...named])];
}

function failureEvents({ what, state }: MergeEffect, error: CaissonError): NewMergeEvent[] {
  const text = error.sentences.slice(0, 2000);
  // Without an agent, a person can still resolve it.
  if (what === "offer" && state.conflict?.to === "agent" && error.code !== "cancelled")
    return [checkedEvent(state, { why: text, hopeless: true })];
  if (what === "cleanup") return [{ type: "merge.cleaned_up", data: { left: [...state.made].slice(0, 1000) } }];
  return [{ type: "merge.failed", data: { code: error.code, text } }];
}

function checkedEvent(
  { step, conflict }: Readonly<MergeState>,
  { why, hopeless }: { why: string | null; hopeless: boolean },
): NewMergeEvent {
  return { type: "merge.checked", data: { step, attempt: theConflict(conflict).attempt, ok: why === null, why, hopeless } };
}

function theConflict(conflict: MergeConflict | null): MergeConflict {
  if (conflict === null) throw new Error("there is no conflict");
  return conflict;
}
