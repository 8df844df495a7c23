import type { JobFacts } from "../../contract/durable/durable-job.ts";
import type { NewMergeEvent } from "../../contract/merge/merge-event.ts";
import { unreachable } from "../../lib/unreachable.ts";
import type { Effect, JobDecision } from "../durable/kind.ts";
import type { MergeConflict, MergeState } from "./merge-state.ts";

/** How often an agent may try to resolve one conflict before a person is asked. */
const TRIES_MAX = 3;
const NAMED_MAX = 5;

/** Work that a merge does outside the log, with all data that the work needs. */
export interface MergeEffect extends Effect {
  what: NonNullable<MergeState["underWay"]>;
  state: Readonly<MergeState>;
}

/** Decides what follows from a merge's state. Pure. */
export function decideMerge(state: MergeState, { facts }: { facts: Readonly<JobFacts> }): JobDecision<NewMergeEvent, MergeEffect> {
  const isCancelled = facts.cancelRequested !== null;
  if (state.underWay !== null && !(isCancelled && waitsForRun(state))) {
    const cancel = isCancelled && state.underWay !== "cleanup";
    return { effects: [{ ...effectOf(facts.id, state), ...(cancel && { cancel }) }] };
  }
  if (isCancelled || state.failure !== null || state.result !== null) return atItsEnd(state, { isCancelled });
  if (state.order === null) return { append: [{ type: "merge.plan_started", data: {} }] };
  if (state.conflict !== null) return inConflict(state, state.conflict);
  const head = state.head ?? "";
  if (state.order.some((session) => !state.merged.includes(session)))
    return { append: [{ type: "merge.step_started", data: { step: state.step + 1, from: head } }] };
  return { append: [{ type: "merge.publish_started", data: { from: head } }] };
}

function inConflict(state: MergeState, conflict: MergeConflict): JobDecision<NewMergeEvent, MergeEffect> {
  if (state.conflicts === "stop") return { append: [{ type: "merge.failed", data: { code: "conflict", text: tellConflict(conflict) } }] };
  const { tries, to, candidate, why, isHopeless } = conflict;
  const offer = (whom: "agent" | "person"): JobDecision<NewMergeEvent, MergeEffect> => ({
    append: [{ type: "merge.offer_started", data: { step: state.step, attempt: nextAttempt(state), to: whom } }],
  });
  const isAgents = to === null ? state.conflicts === "agent" : to === "agent";
  if (isAgents) return tries >= TRIES_MAX || isHopeless ? offer("person") : offer("agent");
  if (candidate === null) return offer("person");
  const reason = why === null ? "" : `${why} `;
  return {
    effects: [],
    waits: { person: `${reason}${tellConflict(conflict)} Resolve the conflict in the session ${candidate}.`.slice(0, 2000) },
  };
}

/** Sessions are named by this number, so it is unique within a merge. */
const nextAttempt = ({ made: sessions }: MergeState) => sessions.length + 1;

function tellConflict({ with: session, files }: MergeConflict): string {
  const named = files.slice(0, NAMED_MAX).map(({ path }) => JSON.stringify(path));
  const more = files.length > NAMED_MAX ? ` and ${files.length - NAMED_MAX} more` : "";
  return `${session} conflicts with the sessions merged before it: ${named.join(", ")}${more}.`;
}

function atItsEnd(state: MergeState, { isCancelled }: { isCancelled: boolean }): JobDecision<NewMergeEvent, MergeEffect> {
  if (!state.isCleanedUp) return { append: [{ type: "merge.cleanup_started", data: {} }] };
  if (state.result !== null) return { end: { finish: "completed", text: state.result } };
  if (isCancelled) return { end: { finish: "cancelled", text: null } };
  return { end: { finish: "failed", text: state.failure?.text ?? null } };
}

const waitsForRun = ({ underWay, conflict }: MergeState) => underWay === "check" && conflict?.run !== null;

/** Returns the same effect for the same work in every process. */
function effectOf(id: string, state: MergeState): MergeEffect {
  const what = state.underWay;
  const { step, conflict } = state;
  switch (what) {
    case "plan":
    case "publish":
    case "cleanup":
      return { id: `${id}/${what}`, what, state };
    case "step":
      return { id: `${id}/step/${step}`, what, state };
    case "offer":
      return { id: `${id}/offer/${step}/${conflict?.attempt}/${conflict?.to}`, what, state };
    case "check": {
      const run = conflict?.run ?? null;
      const look = `${id}/check/${step}/${conflict?.attempt}/${conflict?.answers}`;
      return { id: look, what, state, ...(run !== null && { after: `run/${run}` }) };
    }
    case null:
      throw new Error("the merge has no work in progress");
    default:
      return unreachable(what);
  }
}
