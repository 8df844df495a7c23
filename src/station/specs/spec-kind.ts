import { JOB_LABEL } from "../../contract/label/station-labels.ts";
import type { StartRunInput } from "../../contract/run/run-verbs.ts";
import type { WrittenPhase } from "../../contract/spec/spec.ts";
import { type NewSpecEvent, type SpecEvent, specEvents } from "../../contract/spec/spec-event.ts";
import type { SpecRuns } from "../../contract/spec/spec-verbs.ts";
import { unreachable } from "../../lib/unreachable.ts";
import type { Kind } from "../durable/kind.ts";
import { decideSpec, type SpecMove } from "./decide-spec.ts";
import { phaseTask, workTask } from "./phase-task.ts";
import { failedSpecEffect, performSpecEffect, SPEC_KEY_LABEL, type SpecEffect, type SpecEffectParts } from "./spec-effects.ts";
import { applyToSpec, dataOf, emptySpecState, lastVersion, type SpecState } from "./spec-state.ts";

/** The prefix of spec streams. */
export const SPEC_PREFIX = "spec/";

export type SpecKind = Kind<SpecState, NewSpecEvent, SpecEffect>;

/** Creates the definition by which the driver drives specs. */
export function specKind(parts: SpecEffectParts): SpecKind {
  return {
    name: "spec",
    prefix: SPEC_PREFIX,
    idPrefix: "spec",
    listedBy: "caisson spec ls",
    events: specEvents,
    empty: emptySpecState,
    apply: (state, event) => void applyToSpec(state, event as SpecEvent),
    decide(state, { facts, now }) {
      const isCancelled = facts.cancelRequested !== null;
      // It has ended, and no new execution was requested since.
      if (state.ended !== null) return { end: { finish: finishes[state.ended.outcome], text: state.ended.text } };
      const moves = decideSpec(state, { now: now.toISOString(), cancelledBy: facts.cancelRequested?.by ?? null });
      const append = moves.flatMap(intentOf);
      if (append.length > 0) return { append };
      const [move] = moves;
      if (move?.kind === "sleep") return { effects: [], waits: { due: new Date(move.until) } };
      if (move?.kind === "ask") return { effects: [], waits: { person: `approve ${move.phase} (version ${move.version})` } };
      if (move?.kind === "rest") return { effects: [], waits: { signal: "its execution" } };
      return { effects: moves.flatMap((each) => effectOf(each, { state, isCancelled, merges: parts.merges })) };
    },
    perform: (effect) => performSpecEffect(effect, parts),
    describeFailure: (effect, error) => failedSpecEffect(effect, error.sentences, parts.now),
  };
}

const finishes = { done: "completed", planned: "completed", failed: "failed", cancelled: "cancelled" } as const;

function intentOf(move: SpecMove): NewSpecEvent[] {
  switch (move.kind) {
    case "startPhase": {
      const { phase, attempt, key, feedback } = move;
      return [{ type: "spec.phase_started", data: { phase, attempt, key, feedback } }];
    }
    case "startTask":
      return [{ type: "spec.task_started", data: { task: move.task.id, attempt: move.attempt, key: move.key, base: move.base } }];
    case "startMerge":
      return [{ type: "spec.merge_started", data: { step: move.step, key: move.key, sessions: move.sessions } }];
    case "conclude":
      return [{ type: "spec.concluded", data: { outcome: move.outcome, text: move.text, session: move.session } }];
    case "runPhase":
    case "runTask":
    case "runMerge":
    case "judgePhase":
    case "awaitTask":
    case "awaitMerge":
    case "sleep":
    case "ask":
    case "rest":
      return [];
    default:
      return unreachable(move);
  }
}

/** Returns the effects of a move, with all they need, because the code that performs them has no state. */
function effectOf(
  move: SpecMove,
  { state, isCancelled, merges }: { state: SpecState; isCancelled: boolean; merges: SpecEffectParts["merges"] },
): SpecEffect[] {
  const common = { owner: state.owner, ...(isCancelled && { cancel: true }) };
  const data = dataOf(state);
  switch (move.kind) {
    case "runPhase": {
      const {
        attempt,
        attempt: { phase, key, feedback },
      } = move;
      const task = phaseTask({ phase, attempt: attempt.attempt, idea: state.idea, data, feedback });
      return [{ ...common, kind: "runPhase", id: key, attempt, key, start: runRequest(state, { task, key, by: phase, from: null }) }];
    }
    case "judgePhase":
      return [
        {
          ...{ ...common, kind: "judgePhase", id: `${move.attempt.key}/judge`, after: `run/${move.run}` },
          ...{ attempt: move.attempt, run: move.run, data, version: lastVersion(state) + 1 },
        },
      ];
    case "runTask": {
      const {
        task,
        state: { key, base },
      } = move;
      const start = runRequest(state, { task: workTask({ task, idea: state.idea, data }), key, by: "task", from: base });
      return [{ ...common, kind: "runTask", id: key, task: task.id, key, start }];
    }
    case "awaitTask": {
      const { task, key, session } = move.state;
      const changedBefore =
        move.state.base === null ? [] : state.tasks.filter((each) => each.task !== task).flatMap(({ changed }) => changed);
      return [{ ...common, kind: "awaitTask", id: `${key}/end`, after: `run/${move.run}`, task, run: move.run, session, changedBefore }];
    }
    case "runMerge": {
      const { step, key, sessions } = move.merge;
      const request = { key, sessions, owner: state.owner, parent: `${SPEC_PREFIX}${state.spec}`, runs: state.runs as SpecRuns };
      return [{ ...common, kind: "runMerge", id: key, step, request }];
    }
    case "awaitMerge":
      return [
        {
          ...common,
          kind: "awaitMerge",
          id: `${move.merge.key}/end`,
          after: merges.streamOf(move.id),
          step: move.merge.step,
          merge: move.id,
        },
      ];
    case "startPhase":
    case "startTask":
    case "startMerge":
    case "conclude":
    case "sleep":
    case "ask":
    case "rest":
      return [];
    default:
      return unreachable(move);
  }
}

function runRequest(
  { spec, source, runs }: SpecState,
  { task, key, by, from }: { task: string; key: string; by: WrittenPhase | "task"; from: string | null },
): StartRunInput {
  const { model, settings, budgets } = runs as SpecRuns;
  const agent = agentFor(by, runs as Partial<SpecRuns>);
  return {
    ...{ task, settings, budgets, labels: { spec, [SPEC_KEY_LABEL]: key, [JOB_LABEL]: `${SPEC_PREFIX}${spec}` } },
    ...(model !== undefined && { model }),
    ...(agent !== undefined && { agent }),
    ...(from === null ? { source: source ?? { kind: "empty" } } : { from: { session: from } }),
  };
}

/** Returns the agent, or undefined for a spec from before such agents were recorded. */
function agentFor(by: WrittenPhase | "task", { planner, coder, phaseAgents }: Partial<SpecRuns>): string | undefined {
  return by === "task" ? coder : (phaseAgents?.[by] ?? planner);
}
