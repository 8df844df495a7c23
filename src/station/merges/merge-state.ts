import type { EventFor } from "../../contract/event/event-family.ts";
import { type Handlers, handle } from "../../contract/event/handlers.ts";
import type { ConflictedFile, ConflictPolicy, MergeAnswered, MergeEvent, mergeEvents } from "../../contract/merge/merge-event.ts";
import type { ReadKindEvent } from "../durable/kind.ts";

type Taken = (typeof MergeAnswered)["shape"]["data"]["_output"]["take"];

/** A conflict, and the attempts to resolve it. */
export interface MergeConflict {
  with: string;
  files: readonly ConflictedFile[];
  /** The session with the conflict as git left it. */
  session: string;
  /** Numbers the offers; `tries` of them went to an agent. */
  attempt: number;
  tries: number;
  /** How often a person has reported the conflict as resolved. */
  answers: number;
  to: "agent" | "person" | null;
  /** The copy of `session` in which an agent or a person resolves the conflict. */
  candidate: string | null;
  run: string | null;
  take: Taken;
  why: string | null;
  isHopeless: boolean;
}

/** The state of a merge, folded from its events. */
export interface MergeState {
  sessions: readonly string[];
  conflicts: ConflictPolicy;
  agent: string;
  model: string | null;
  name: string | null;
  order: readonly string[] | null;
  digests: Readonly<Record<string, string>>;
  merged: string[];
  /** The last session with merged files; before the first step, the first session in the order. */
  head: string | null;
  step: number;
  conflict: MergeConflict | null;
  /** The work that was started and has no outcome yet. */
  underWay: "plan" | "step" | "offer" | "check" | "publish" | "cleanup" | null;
  /** Intermediate sessions, which are removed at the end. */
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

export function applyToMerge(state: MergeState, event: ReadKindEvent): void {
  handle(handlers, event, state);
}

type EventOf<Type extends MergeEvent["type"]> = Extract<MergeEvent, { type: Type }>;

const handlers: Handlers<EventFor<typeof mergeEvents, "state">, MergeState> = {
  "merge.begun": ({ data }, state) => {
    Object.assign(state, data);
  },
  "merge.plan_started": begin("plan"),
  "merge.planned": ({ data: { order, digests } }, state) => {
    const [first = null] = order;
    Object.assign(state, { underWay: null, order, digests, head: first, merged: first === null ? [] : [first] });
  },
  "merge.step_started": ({ data: { step } }, state) => {
    Object.assign(state, { underWay: "step", step });
  },
  "merge.step_ended": stepEnded,
  "merge.offer_started": offerStarted,
  "merge.offered": ({ data: { session, run } }, state) => {
    state.made.push(session);
    Object.assign(state.conflict ?? {}, { candidate: session, run });
    // A person answers with an event; an agent's run is checked when it has ended.
    state.underWay = run === null ? null : "check";
  },
  "merge.answered": applyAnswer,
  "merge.checked": applyCheck,
  "merge.publish_started": begin("publish"),
  "merge.published": ({ data }, state) => {
    Object.assign(state, { underWay: null, result: data.session });
  },
  "merge.failed": ({ data }, state) => {
    Object.assign(state, { underWay: null, failure: data });
  },
  "merge.cleanup_started": begin("cleanup"),
  "merge.cleaned_up": (_, state) => {
    Object.assign(state, { underWay: null, isCleanedUp: true });
  },
};

function begin(underWay: MergeState["underWay"]): (_: unknown, state: MergeState) => void {
  return (_, state) => {
    state.underWay = underWay;
  };
}

function stepEnded({ data: { session, merged, conflict } }: EventOf<"merge.step_ended">, state: MergeState): void {
  state.underWay = null;
  state.made.push(session);
  state.merged.push(...merged);
  if (conflict === null) state.head = session;
  else {
    const untried = { attempt: 0, tries: 0, answers: 0, to: null, candidate: null, run: null, take: [], why: null, isHopeless: false };
    state.conflict = { ...conflict, session, ...untried };
  }
}

function offerStarted({ data: { attempt, to } }: EventOf<"merge.offer_started">, state: MergeState): void {
  const { conflict } = state;
  state.underWay = "offer";
  if (conflict === null) return;
  Object.assign(conflict, { attempt, to, run: null, candidate: null, take: [] });
  if (to === "agent") conflict.tries += 1;
}

function applyAnswer({ data: { take, agent } }: EventOf<"merge.answered">, state: MergeState): void {
  if (state.conflict === null) return;
  if (agent) Object.assign(state.conflict, { to: "agent", tries: 0, candidate: null, why: null, isHopeless: false });
  else {
    state.conflict.answers += 1;
    state.conflict.take = take;
    state.underWay = "check";
  }
}

function applyCheck({ data: { ok, why, hopeless } }: EventOf<"merge.checked">, state: MergeState): void {
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
