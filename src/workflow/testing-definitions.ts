import type { WorkflowDefinition } from "../contract/workflow/workflow.ts";
import { readDefinition, refusedDefinition } from "./validate.ts";

/** Checks a definition in this thread; the station checks what callers send in another one. Throws `invalid`. */
export function checkDefinition(value: unknown): WorkflowDefinition {
  const { definition, problems } = readDefinition(value);
  if (definition === null) throw refusedDefinition(problems);
  return definition;
}
