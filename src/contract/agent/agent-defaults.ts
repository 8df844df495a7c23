import { z } from "zod";
import { type HarnessSettings, PermissionPreset, PermissionRules } from "../harness/harness.ts";
import { fieldOptions } from "../sandbox/sandbox-field-options.ts";
import { AgentDefinition, type SubAgentDefinition } from "./agent.ts";

/**
 * Defaults from config.json for every agent: everything that an agent file can specify except its name, description and
 * prompt. Secrets are only named, since config.json defines them itself.
 */
type Own = "name" | "description" | "system" | "floor" | "permissions" | "harness" | "sandbox" | "hooks";
export interface AgentDefaults extends Partial<Omit<SubAgentDefinition, Own | "guardian" | "workspace">> {
  harness?: Partial<Omit<HarnessSettings, "doomLoop" | "compaction">> & {
    doomLoop?: Partial<HarnessSettings["doomLoop"]>;
    compaction?: Partial<HarnessSettings["compaction"]>;
  };
  guardian?: NonNullable<SubAgentDefinition["guardian"]>;
  permissions?: PermissionPreset | PermissionRules;
  hooks?: Partial<SubAgentDefinition["hooks"]>;
  sandbox?: Partial<SubAgentDefinition["sandbox"]>;
  workspace?: Partial<SubAgentDefinition["workspace"]>;
}

const { name: _name, description: _description, system: _system, floor: _floor, subAgents: _subAgents, ...shape } = AgentDefinition.shape;

export const AgentDefaults = z.lazy(() => {
  const sandbox = without(shape.sandbox) as z.ZodObject;
  const settable = Object.entries(sandbox.shape).filter(([name]) => name === "limits" || isSettable(name));
  return z.strictObject({
    ...(without(z.strictObject(shape)) as z.ZodObject).shape,
    permissions: z.union([PermissionPreset, PermissionRules]).optional(),
    sandbox: z.strictObject(Object.fromEntries(settable)).optional(),
  });
}) as z.ZodType<AgentDefaults>;

function isSettable(name: string): boolean {
  return name !== "secrets" && fieldOptions[name as keyof typeof fieldOptions].keys.length > 0;
}

/** Returns the schema without its defaults: absent values stay absent, even within groups of settings. */
function without(schema: unknown): z.ZodType {
  if (schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault || schema instanceof z.ZodOptional) return without(schema.unwrap());
  if (!(schema instanceof z.ZodObject)) return schema as z.ZodType;
  return z.strictObject(Object.fromEntries(Object.entries(schema.shape).map(([name, each]) => [name, without(each).optional()])));
}
