import { z } from "zod";
import { WorkflowDefinition } from "../contract/workflow/workflow.ts";

/** Returns the definition's JSON Schema, for editors. `validate` checks more, such as the syntax of expressions. */
export function workflowSchema(): object {
  return { title: "A Caisson workflow", ...z.toJSONSchema(WorkflowDefinition, { io: "input", reused: "ref" }) };
}
