import { z } from "zod";
import type { ToolSchema } from "./model/model.ts";
import type { Tool } from "./tool.ts";

/** By the parameters they were made of: all runs of a process share them, since making one costs more than a step. */
const made = new WeakMap<Tool["parameters"], ToolSchema["parameters"]>();

/** A tool as a model is shown it. */
export function toolSchema(tool: Pick<Tool, "name" | "description" | "parameters" | "jsonSchema">): ToolSchema {
  const { name, description } = tool;
  return { name, description, parameters: tool.jsonSchema ?? parametersOf(tool.parameters) };
}

function parametersOf(parameters: Tool["parameters"]): ToolSchema["parameters"] {
  const known = made.get(parameters);
  if (known !== undefined) return known;
  const { $schema: _, ...schema } = z.toJSONSchema(parameters, { io: "input" });
  made.set(parameters, schema as ToolSchema["parameters"]);
  return schema as ToolSchema["parameters"];
}
