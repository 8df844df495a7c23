import { z } from "zod";
import type { ToolSchema } from "./model/model.ts";
import type { Tool } from "./tool.ts";

/**
 * Schemas by the parameters they were built from. All runs of a process share them, since building one costs more than
 * a step.
 */
const schemaCache = new WeakMap<Tool["parameters"], ToolSchema["parameters"]>();

/** Returns a tool's description for the model. */
export function toolSchema(tool: Pick<Tool, "name" | "description" | "parameters" | "jsonSchema">): ToolSchema {
  const { name, description } = tool;
  return { name, description, parameters: tool.jsonSchema ?? parametersOf(tool.parameters) };
}

function parametersOf(parameters: Tool["parameters"]): ToolSchema["parameters"] {
  const known = schemaCache.get(parameters);
  if (known !== undefined) return known;
  const { $schema: _, ...schema } = z.toJSONSchema(parameters, { io: "input" });
  schemaCache.set(parameters, schema as ToolSchema["parameters"]);
  return schema as ToolSchema["parameters"];
}
