import type { WorkflowStep } from "../contract/workflow/workflow.ts";
import { nearest } from "../lib/nearest.ts";

type Path = readonly PropertyKey[];

interface Named {
  path: Path;
  /** Number of steps before it in the definition. */
  order: number;
  hasWorkspace: boolean;
}

/** A place where a step names another step to take over its workspace. */
interface Reference {
  path: Path;
  to: string;
  order: number;
  from: Path;
}

export interface StepReferences {
  /** Call in the order of the definition. */
  add(step: WorkflowStep, path: Path): void;
  /** Call when all steps are added. */
  problems(): { path: Path; text: string; hint?: string }[];
}

/** Checks references to earlier steps: each must exist, and none may be circular. */
export function createStepReferences(): StepReferences {
  const steps = new Map<string, Named>();
  const references: Reference[] = [];
  return {
    add(step, path) {
      const order = steps.size;
      if (!steps.has(step.name)) steps.set(step.name, { path, order, hasWorkspace: hasWorkspace(step) });
      for (const { at, to } of referencesOf(step)) references.push({ path: [...path, ...at], to, order, from: path });
    },
    problems: () =>
      references.flatMap((reference) => {
        const problem = problemWith(reference, steps);
        return problem === null ? [] : [{ path: reference.path, ...problem }];
      }),
  };
}

function problemWith({ to, order, from }: Reference, steps: ReadonlyMap<string, Named>): { text: string; hint?: string } | null {
  const step = steps.get(to);
  if (step === undefined) {
    const suggestion = nearest(to, [...steps.keys()]);
    return { text: `there is no step ${to} in this workflow`, ...(suggestion && { hint: `Did you mean ${suggestion}?` }) };
  }
  if (step.order >= order) {
    return { text: `the step ${to} does not come before this one`, hint: "A step can only take over the workspace of one that has ended." };
  }
  if (!step.hasWorkspace) {
    return { text: `the step ${to} has no workspace`, hint: "Agents and merges have one, and so do commands with a workspace setting." };
  }
  const apart = from.findIndex((part, at) => part !== step.path[at]);
  const around = from[apart - 1];
  if (around === "branches" || around === "cases") {
    return {
      text: `the step ${to} is in another ${around === "branches" ? "branch" : "case"}`,
      hint: "A step after all branches can take over their workspaces.",
    };
  }
  return null;
}

function hasWorkspace(step: WorkflowStep): boolean {
  return step.kind === "agent" || step.kind === "merge" || (step.kind === "command" && step.workspace !== undefined);
}

function referencesOf(step: WorkflowStep): { at: Path; to: string }[] {
  if (step.kind === "merge") return Array.isArray(step.of) ? step.of.map((to, index) => ({ at: ["of", index], to })) : [];
  if (step.kind !== "agent" && step.kind !== "command") return [];
  const { workspace } = step;
  if (workspace === undefined || typeof workspace === "string") return [];
  return Object.entries(workspace).map(([how, to]) => ({ at: ["workspace", how], to: String(to) }));
}
