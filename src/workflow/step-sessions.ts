import { CaissonError } from "../contract/error/error.ts";
import type { WorkflowStep } from "../contract/workflow/workflow.ts";
import type { Json, StepState } from "./state.ts";
import { type Frame, prefixIn, type Turn } from "./turn.ts";

/** Kinds of steps that leave a workspace: the session they worked in. */
const WITH_SESSION = new Set(["agent", "command", "merge"]);

/**
 * Returns the only session that a step left, as seen from this frame. Throws `invalid` if the step left no session or
 * several.
 */
export function sessionLeftBy(turn: Turn, frame: Frame, name: string): string {
  const [session, another] = sessionsLeftBy(turn, frame, name);
  if (session === undefined) {
    throw new CaissonError("invalid", `the step ${name} left no workspace`, { hint: "It was skipped, or it did not complete." });
  }
  if (another !== undefined) {
    throw new CaissonError("invalid", `the step ${name} left more than one workspace`, {
      hint: "Combine them first with a step of kind merge.",
    });
  }
  return session;
}

/**
 * Returns all sessions that a step left, without duplicates, in definition order. A step within branches or items has
 * one session for each of them that has ended. The frame nearest to the reference wins, so within an item the name
 * refers to the item's own step.
 */
export function sessionsLeftBy(turn: Turn, frame: Frame, name: string): string[] {
  for (let around: Frame | null = frame; around !== null; around = around.outer) {
    const found = sessionsIn(turn, around, name);
    if (found.length > 0) return [...new Set(found)];
  }
  return [];
}

function sessionsIn(turn: Turn, { prefix, steps }: Pick<Frame, "prefix" | "steps">, name: string): string[] {
  return steps.flatMap((step) => {
    const path = prefix + step.name;
    const state = turn.state.steps.get(path);
    if (state === undefined) return [];
    if (step.name === name) return sessionOf(state) ?? [];
    return partsOf(step, state).flatMap((part) =>
      sessionsIn(turn, { prefix: `${prefixIn(path, state)}${part.name}/`, steps: part.steps }, name),
    );
  });
}

function sessionOf({ kind, status, output }: StepState): string | null {
  if (!WITH_SESSION.has(kind) || status !== "completed" || output === null || typeof output !== "object") return null;
  const { session } = output as { session?: Json };
  return typeof session === "string" ? session : null;
}

/** Returns the lists of steps within a started step. */
function partsOf(step: WorkflowStep, { given: input }: StepState): { name: string; steps: readonly WorkflowStep[] }[] {
  switch (step.kind) {
    case "switch":
      return [
        ...step.cases.map(({ steps }, index) => ({ name: String(index), steps })),
        ...(step.default === undefined ? [] : [{ name: "default", steps: step.default }]),
      ];
    case "parallel":
      return Object.entries(step.branches).map(([name, steps]) => ({ name, steps }));
    case "foreach":
      return ((input as { items?: Json[] } | null)?.items ?? []).map((_, index) => ({ name: String(index), steps: step.steps }));
    case "try":
      return Object.entries({ try: step.steps, catch: step.catch ?? [], finally: step.finally ?? [] }).map(([name, steps]) => ({
        name,
        steps,
      }));
    default:
      return [];
  }
}
