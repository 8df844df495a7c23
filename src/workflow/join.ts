import type { StepOf, WorkflowStep } from "../contract/workflow/workflow.ts";
import type { Scope } from "./expression.ts";
import { hasBegun, inside, type Place } from "./place.ts";
import type { Json } from "./state.ts";
import { CANCELLED, prefixIn, type Result, RUNNING, type Turn } from "./turn.ts";

interface Branch {
  name: string;
  steps: readonly WorkflowStep[];
  names: Scope;
}

/**
 * Runs parallel branches, or the items of a list, up to the allowed number at a time, until enough have completed or
 * too few can still complete. Then ends the rest, so that they have an outcome as well. With `collect`, the rest
 * continue even if some have failed.
 */
export function joinBranches(turn: Turn, step: StepOf<"parallel" | "foreach">, place: Place): Result {
  const branches = branchesOf(step, place);
  const key = `${prefixIn(place.path, place.state)}*`;
  const why = turn.state.cancelling.get(key);
  const isCancelling = place.frame.isCancelling || why !== undefined;
  const atOnce = step.kind === "foreach" ? (step.concurrency ?? 1) : branches.length;
  const results = runBranches(turn, place, { branches, atOnce, isCancelling });
  const count = (status: Result["status"]) => results.filter((result) => result.status === status).length;
  const { join = "all" } = step;
  const needed = Math.min(join === "all" ? branches.length : join === "any" ? 1 : join, branches.length);
  const isJoined = count("completed") >= needed && (branches.length > 0 || needed === 0);
  const isFailed = branches.length - count("failed") - count("cancelled") < needed;
  if (count("running") > 0) {
    const isOver = isJoined ? needed < branches.length : isFailed && step.onFailure !== "collect";
    if (isOver && !isCancelling)
      turn.events.push({ type: "workflow.cancelling", data: { path: key, why: isJoined ? "joined" : "failed" } });
    return RUNNING;
  }
  if (isJoined) return { status: "completed", output: outputOf(step, branches, results) };
  const failed = results.find((result) => result.status === "failed");
  return failed !== undefined && !place.frame.isCancelling ? failed : (failed ?? CANCELLED);
}

function branchesOf(step: StepOf<"parallel" | "foreach">, { state }: Place): Branch[] {
  if (step.kind === "parallel") return Object.entries(step.branches).map(([name, steps]) => ({ name, steps, names: {} }));
  const { items } = state.given as { items: Json[] };
  return items.map((item, index) => ({ name: String(index), steps: step.steps, names: { [step.as ?? "item"]: item, index } }));
}

/**
 * Advances the branches. A branch that has not begun is still waiting, or will never run. When the turn is full, the
 * remaining branches are skipped and count as running.
 */
function runBranches(
  turn: Turn,
  place: Place,
  { branches, atOnce, isCancelling }: { branches: readonly Branch[]; atOnce: number; isCancelling: boolean },
): Result[] {
  let active = 0;
  const results = branches.map((branch) => {
    if (turn.isFull) return RUNNING;
    if (!hasBegun(turn, place, branch)) return null;
    const result = inside(turn, place, { ...branch, isCancelling });
    if (result.status === "running") active += 1;
    return result;
  });
  return results.map((result, index) => {
    if (result !== null) return result;
    if (isCancelling) return CANCELLED;
    const branch = branches[index];
    if (branch !== undefined && active < atOnce && !turn.isFull) {
      active += 1;
      return inside(turn, place, branch);
    }
    return RUNNING;
  });
}

function outputOf(step: StepOf<"parallel" | "foreach">, branches: readonly Branch[], results: readonly Result[]): Json {
  const outcomes = results.map((result) => ({
    status: result.status,
    output: result.status === "completed" ? result.output : null,
    error: result.status === "failed" ? result.error : null,
  }));
  return step.kind === "foreach" ? outcomes : Object.fromEntries(branches.map(({ name }, index) => [name, outcomes[index] ?? null]));
}
