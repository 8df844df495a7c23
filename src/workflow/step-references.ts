import type { WorkflowStep } from "../contract/workflow.ts";
import { nearest } from "../lib/nearest.ts";

type Path = readonly PropertyKey[];

interface Named {
  path: Path;
  /** How many steps come before it in the definition. */
  order: number;
  hasWorkspace: boolean;
}

/** Where one step names another, whose workspace it takes over. */
interface Reference {
  path: Path;
  to: string;
  order: number;
  from: Path;
}

export interface StepReferences {
  /** In the order of the definition. */
  add(step: WorkflowStep, path: Path): void;
  /** Once all steps are known. */
  problems(): { path: Path; text: string; hint?: string }[];
}

/** Looks after the names by which steps mean earlier ones: none is unknown, and none leads in a circle. */
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
    const meant = nearest(to, [...steps.keys()]);
    return { text: `there is no step ${to} in this workflow`, ...(meant && { hint: `Did you mean ${meant}?` }) };
  }
  if (step.order >= order) {
    return { text: `the step ${to} does not come before this one`, hint: "A step can take over the workspace of one that has ended." };
  }
  if (!step.hasWorkspace) {
    return { text: `the step ${to} has no workspace`, hint: "Agents and merges have one, and commands that say whose they work in." };
  }
  const apart = from.findIndex((part, at) => part !== step.path[at]);
  const around = from[apart - 1];
  if (around === "branches" || around === "cases") {
    return {
      text: `the step ${to} is in another ${around === "branches" ? "branch" : "case"}`,
      hint: "A step after all branches can take over what is in them.",
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
