import { AgentDefinition } from "../../contract/agent/agent.ts";
import type { AgentDefaults } from "../../contract/agent/agent-defaults.ts";
import type { UsualBounds } from "../../contract/sandbox/field-rights.ts";
import { mergeFields } from "../../contract/sandbox/sandbox-field-options.ts";
import { joinedFloor, permissionFloor, permissionRules } from "../permissions.ts";

/** The settings in an agent file, before defaults are filled in. */
export type SaidOfAgent = Omit<AgentDefaults, "permissions" | "sandbox"> & {
  permissions: Record<string, unknown>;
  floor: Parameters<typeof joinedFloor>[0];
  sandbox: object;
};

/**
 * Fills a file's settings with the defaults of the configuration. Rules, variables, limits, protected paths, hooks and
 * servers are merged; any other setting of the file replaces the default.
 */
export function withDefaults(settings: SaidOfAgent, defaults: AgentDefaults): Record<string, unknown> {
  const { harness = {}, guardian, permissions = {}, hooks, mcp, sandbox = {}, workspace, ...rest } = defaults;
  return {
    ...rest,
    ...settings,
    harness: {
      ...harness,
      ...settings.harness,
      doomLoop: { ...harness.doomLoop, ...settings.harness?.doomLoop },
      compaction: { ...harness.compaction, ...settings.harness?.compaction },
    },
    ...((guardian ?? settings.guardian) && { guardian: { ...guardian, ...settings.guardian } }),
    permissions: { ...permissionRules(permissions), ...settings.permissions },
    floor: joinedFloor(permissionFloor(permissions), settings.floor),
    hooks: {
      before: [...(hooks?.before ?? []), ...(settings.hooks?.before ?? [])],
      after: [...(hooks?.after ?? []), ...(settings.hooks?.after ?? [])],
    },
    mcp: { ...mcp, ...settings.mcp },
    sandbox: mergeFields(sandbox, settings.sandbox),
    workspace: { ...workspace, ...settings.workspace },
  };
}

/** Returns an agent whose file sets nothing. */
export function defaultAgent(defaults: AgentDefaults): AgentDefinition {
  const nothing = { permissions: {}, floor: {}, sandbox: {} };
  return AgentDefinition.parse({ ...withDefaults(nothing, defaults), name: "default", system: "" });
}

/** Returns the bounds of the default agent on this machine. */
export function usualBounds(defaults: AgentDefaults, limits: UsualBounds["limits"]): UsualBounds {
  const { harness, permissions, sandbox } = defaultAgent(defaults);
  const sizes = Object.entries(sandbox).filter((entry): entry is [string, number] => typeof entry[1] === "number");
  return { limits: { ...limits, ...sandbox.limits, ...Object.fromEntries(sizes) }, harness, permissions };
}
