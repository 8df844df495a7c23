import { CaissonError } from "../contract/error.ts";
import type { WorkflowStep } from "../contract/workflow.ts";
import type { Json, StepState } from "./state.ts";
import { type Frame, prefixIn, type Turn } from "./turn.ts";

/** Steps that leave a workspace behind: the session that they worked in. */
const WITH_SESSION = new Set(["agent", "command", "merge"]);

/** The one session that a step left, as a step in this frame sees it. Throws `invalid` for none and for several. */
export function sessionLeftBy(turn: Turn, frame: Frame, name: string): string {
  const [session, another] = sessionsLeftBy(turn, frame, name);
  if (session === undefined) {
    throw new CaissonError("invalid", `the step ${name} left no workspace`, { hint: "It was skipped, or it did not complete." });
  }
  if (another !== undefined) {
    throw new CaissonError("invalid", `the step ${name} left more than one workspace`, { hint: "A step of kind merge makes one of them." });
  }
  return session;
}

/**
 * All that it left, each once, in the order of the definition: one in branches or items that have ended stands for all
 * of those. The nearest around the frame counts, so that a step of an item means the item's own.
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

/** The lists of steps in a step that was begun. */
function partsOf(step: WorkflowStep, { given }: StepState): { name: string; steps: readonly WorkflowStep[] }[] {
  switch (step.kind) {
    case "switch":
      return [
        ...step.cases.map(({ steps }, index) => ({ name: String(index), steps })),
        ...(step.default === undefined ? [] : [{ name: "default", steps: step.default }]),
      ];
    case "parallel":
      return Object.entries(step.branches).map(([name, steps]) => ({ name, steps }));
    case "foreach":
      return ((given as { items?: Json[] } | null)?.items ?? []).map((_, index) => ({ name: String(index), steps: step.steps }));
    case "try":
      return Object.entries({ try: step.steps, catch: step.catch ?? [], finally: step.finally ?? [] }).map(([name, steps]) => ({
        name,
        steps,
      }));
    default:
      return [];
  }
}
