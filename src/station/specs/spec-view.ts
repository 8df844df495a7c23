import type { JobFacts } from "../../contract/durable/durable-job.ts";
import { phases, type SpecTask } from "../../contract/spec/spec.ts";
import type { SpecFacts } from "../../contract/spec/spec-facts.ts";
import type { SpecSummary, SpecView } from "../../contract/spec/spec-verbs.ts";
import { withoutSecret } from "../../workspace/git/address.ts";
import type { Folded } from "../durable/durable-log.ts";
import { coverage } from "./coverage.ts";
import { decideSpec } from "./decide-spec.ts";
import { evaluators } from "./evaluators.ts";
import { dataOf, lastVersion, openAttempt, phaseOf, type SpecState, type TaskState } from "./spec-state.ts";

const TITLE_CHARACTERS_MAX = 100;

/** Builds a summary from a list's facts, or from the spec itself. */
export function specSummary(
  facts: JobFacts & { seq: number; updatedAt: string },
  { name, isDraft, outcome, phase, version }: SpecFacts,
): SpecSummary {
  const { id, owner, title, createdAt, updatedAt, seq, waits, paused, finish } = facts;
  const open =
    paused !== null ? "paused" : waits?.person != null ? "waiting" : waits?.due != null ? "retrying" : isDraft ? "draft" : "running";
  return {
    spec: id,
    name,
    owner,
    title,
    status: finish === null ? open : (outcome ?? "failed"),
    phase,
    version,
    asks: finish === null && paused === null ? (waits?.person ?? null) : null,
    seq,
    createdAt,
    updatedAt,
  };
}

export function specView({ state, facts, seq }: Folded<SpecState>, now: string): SpecView {
  const { idea, gates, parallel, ended, name, updatedAt } = state;
  const data = dataOf(state);
  const [move] = decideSpec(state, { now, cancelledBy: facts.cancelRequested?.by ?? null });
  const pendingGate = move?.kind === "ask" && facts.finish === null ? { phase: move.phase, version: move.version } : null;
  const own = {
    name,
    isDraft: !state.isDriven && ended === null,
    outcome: ended?.outcome ?? null,
    phase: phaseOf(state),
    version: lastVersion(state),
  };
  return {
    ...specSummary({ ...facts, seq, updatedAt }, own),
    idea,
    gates,
    parallel,
    source: state.source === null ? null : withoutSecret(state.source),
    asked: pendingGate,
    dueAt: facts.waits?.due ?? null,
    ended: ended === null ? null : { text: ended.text, at: ended.at },
    phases: phases.map((phase) => phaseView(state, phase, pendingGate?.phase ?? null)),
    versions: state.versions.map(({ version, phase, by, at }) => ({ version, phase, by, at })),
    attempts: state.attempts.map(({ phase, attempt, run, judgement, startedAt, endedAt }) => ({
      ...{ phase, attempt, run, judgement, startedAt, endedAt },
    })),
    decisions: state.verdicts,
    tasks: (data.tasks?.tasks ?? []).map((task) =>
      taskView(
        task,
        state.tasks.find((each) => each.task === task.id),
      ),
    ),
    merges: state.merges.map(({ merge, sessions, session = null, text }) => ({ merge, sessions, session, text })),
    coverage: coverage(data, doneTasks(state)),
    session: ended?.session ?? null,
    data,
  };
}

/** Returns the first line of the idea, truncated. */
export function titleOf({ idea }: Pick<SpecState, "idea">): string {
  const [first = ""] = idea.split("\n");
  return first.length > TITLE_CHARACTERS_MAX ? `${first.slice(0, TITLE_CHARACTERS_MAX - 1)}…` : first;
}

export function doneTasks(state: SpecState) {
  return state.tasks.map(({ task, finish, changed }) => ({ task, isDone: finish === "done", changed }));
}

function phaseView(state: SpecState, phase: (typeof phases)[number], gatePhase: string | null): SpecView["phases"][number] {
  if (phase === "complete") {
    const isWorking = state.isDriven && phaseOf(state) === "complete";
    const end = state.ended?.outcome === "done" ? "written" : isWorking ? "working" : "missing";
    return { phase, state: end, version: null };
  }
  const current = state.current[phase];
  const version = current?.version ?? null;
  if (openAttempt(state)?.phase === phase) return { phase, version, state: "working" };
  if (gatePhase === phase) return { phase, version, state: "asked" };
  if ((state.round[phase] ?? 0) >= evaluators[phase].attempts) return { phase, version, state: "failed" };
  return { phase, version, state: current === undefined ? "missing" : current.isStale ? "stale" : "written" };
}

function taskView({ id, title, dependsOn }: SpecTask, state: TaskState | undefined): SpecView["tasks"][number] {
  const { run = null, session = null, finish = null, changed = [] } = state ?? {};
  const isOver = finish !== null;
  const taskStatus = state === undefined ? "waiting" : !isOver ? "running" : finish === "done" ? "done" : "failed";
  return { id, title, dependsOn, run, session, finish, changed, state: taskStatus };
}
