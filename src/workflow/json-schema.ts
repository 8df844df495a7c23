import { z } from "zod";
import { WorkflowDefinition } from "../contract/workflow.ts";

/** The definition's JSON Schema, for editors. `validate` says more, such as whether an expression is one. */
export function workflowSchema(): object {
  return { title: "A workflow of Caisson", ...z.toJSONSchema(WorkflowDefinition, { io: "input", reused: "ref" }) };
}
