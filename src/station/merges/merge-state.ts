import type { ConflictedFile, ConflictPolicy, MergeAnswered, MergeEvent } from "../../contract/merge-event.ts";
import { unreachable } from "../../lib/unreachable.ts";
import type { ReadKindEvent } from "../driven/kind.ts";

type Taken = (typeof MergeAnswered)["shape"]["data"]["_output"]["take"];

/** A conflict, and what was tried to resolve it. */
export interface MergeConflict {
  with: string;
  files: readonly ConflictedFile[];
  /** With the conflict as git left it. */
  session: string;
  /** Numbers what was offered; `tries` of it were an agent's. */
  attempt: number;
  tries: number;
  /** How often a person said that it is resolved. */
  answers: number;
  to: "agent" | "person" | null;
  /** A copy of that in which it is to be resolved. */
  candidate: string | null;
  run: string | null;
  take: Taken;
  why: string | null;
  isHopeless: boolean;
}

/** A merge, as a fold of its events. */
export interface MergeState {
  sessions: readonly string[];
  conflicts: ConflictPolicy;
  agent: string;
  model: string | null;
  name: string | null;
  order: readonly string[] | null;
  digests: Readonly<Record<string, string>>;
  merged: string[];
  /** The last session that holds what was merged; the first in the order before any step. */
  head: string | null;
  step: number;
  conflict: MergeConflict | null;
  /** What was begun and has no outcome. */
  underWay: "plan" | "step" | "offer" | "check" | "publish" | "cleanup" | null;
  /** Sessions on the way, which go at the end. */
  made: string[];
  result: string | null;
  failure: { code: string; text: string } | null;
  isCleanedUp: boolean;
}

export const emptyMerge = (): MergeState => ({
  sessions: [],
  conflicts: "ask",
  agent: "merger",
  model: null,
  name: null,
  order: null,
  digests: {},
  merged: [],
  head: null,
  step: 0,
  conflict: null,
  underWay: null,
  made: [],
  result: null,
  failure: null,
  isCleanedUp: false,
});

export function applyToMerge(state: MergeState, read: ReadKindEvent): void {
  // The shared ones are in the facts.
  if (!read.type.startsWith("merge.")) return;
  const event = read as MergeEvent;
  switch (event.type) {
    case "merge.begun":
      Object.assign(state, event.data);
      return;
    case "merge.plan_started":
      state.underWay = "plan";
      return;
    case "merge.planned": {
      const { order, digests } = event.data;
      const [first = null] = order;
      Object.assign(state, { underWay: null, order, digests, head: first, merged: first === null ? [] : [first] });
      return;
    }
    case "merge.step_started":
      state.underWay = "step";
      state.step = event.data.step;
      return;
    case "merge.step_ended":
      stepEnded(state, event.data);
      return;
    case "merge.offer_started":
      state.underWay = "offer";
      offerStarted(state, event.data);
      return;
    case "merge.offered":
      state.made.push(event.data.session);
      Object.assign(state.conflict ?? {}, { candidate: event.data.session, run: event.data.run });
      // A person is waited for; an agent's run is looked at once it is over.
      state.underWay = event.data.run === null ? null : "check";
      return;
    case "merge.answered":
      answered(state, event.data);
      return;
    case "merge.checked":
      checked(state, event.data);
      return;
    case "merge.publish_started":
      state.underWay = "publish";
      return;
    case "merge.published":
      state.underWay = null;
      state.result = event.data.session;
      return;
    case "merge.failed":
      state.underWay = null;
      state.failure = event.data;
      return;
    case "merge.cleanup_started":
      state.underWay = "cleanup";
      return;
    case "merge.cleaned_up":
      state.underWay = null;
      state.isCleanedUp = true;
      return;
    default:
      unreachable(event);
  }
}

type Data<Type extends MergeEvent["type"]> = Extract<MergeEvent, { type: Type }>["data"];

function stepEnded(state: MergeState, { session, merged, conflict }: Data<"merge.step_ended">): void {
  state.underWay = null;
  state.made.push(session);
  state.merged.push(...merged);
  if (conflict === null) state.head = session;
  else {
    const untried = { attempt: 0, tries: 0, answers: 0, to: null, candidate: null, run: null, take: [], why: null, isHopeless: false };
    state.conflict = { ...conflict, session, ...untried };
  }
}

function offerStarted({ conflict }: MergeState, { attempt, to }: Data<"merge.offer_started">): void {
  if (conflict === null) return;
  Object.assign(conflict, { attempt, to, run: null, candidate: null, take: [] });
  if (to === "agent") conflict.tries += 1;
}

function answered(state: MergeState, { take, agent }: Data<"merge.answered">): void {
  if (state.conflict === null) return;
  if (agent) Object.assign(state.conflict, { to: "agent", tries: 0, candidate: null, why: null, isHopeless: false });
  else {
    state.conflict.answers += 1;
    state.conflict.take = take;
    state.underWay = "check";
  }
}

function checked(state: MergeState, { ok, why, hopeless }: Data<"merge.checked">): void {
  const { conflict } = state;
  state.underWay = null;
  if (conflict === null) return;
  if (!ok) {
    Object.assign(conflict, { why, isHopeless: hopeless, take: [] });
    return;
  }
  state.merged.push(conflict.with);
  state.head = conflict.candidate;
  state.conflict = null;
}
