import { z } from "zod";
import { ENV_CHARACTERS_MAX, LongText, PATH_CHARACTERS_MAX, PathText, recordOf } from "../bounded.ts";
import { GuardianAction } from "../guardian/guardian-config.ts";
import { HarnessSettings, PermissionRules } from "../harness/harness.ts";
import { EnvName } from "../ids.ts";
import { settingsShape } from "../sandbox/sandbox-fields.ts";

/** An agent after its file, the configuration and the flags have been merged. Stored with each run. */

/** Maximum number of tools, agents, variables or files; well above any real use. */
const NAMES_MAX = 1000;
const HOOKS_MAX = 100;
const ToolText = z.string().max(PATH_CHARACTERS_MAX);

/**
 * A command run inside the sandbox before or after a tool. It reads the call as JSON on stdin. Exit 0 continues, 2
 * blocks with stderr as the reason, 3 interrupts the run.
 */
export const HookCommand = z.strictObject({
  /** Names of the tools that the hook applies to; absent: all. */
  tools: z.array(ToolText).max(NAMES_MAX).optional(),
  command: LongText.min(1),
  timeoutMs: z.int().min(100).max(600_000).default(30_000),
});
export type HookCommand = z.infer<typeof HookCommand>;

export const McpServer = z.strictObject({
  command: PathText,
  args: z.array(LongText).max(1000).default([]),
  env: recordOf(EnvName, z.string().max(ENV_CHARACTERS_MAX), NAMES_MAX).default({}),
});
export type McpServer = z.infer<typeof McpServer>;

/** Guardian settings from an agent file or the caller that starts the run; absent: the station's defaults. */
export const GuardianSettings = z.strictObject({ enabled: z.boolean().optional(), atMost: GuardianAction.optional() });
export type GuardianSettings = z.infer<typeof GuardianSettings>;

const OneAgent = z.strictObject({
  name: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/),
  description: LongText.default(""),
  model: z.string().max(500).optional(),
  /** Tool names, or `mcp:SERVER` for all tools of a server. Absent: all built-in ones. */
  tools: z.array(ToolText).max(NAMES_MAX).optional(),
  /** Agents that it may delegate to. */
  agents: z.array(ToolText).max(NAMES_MAX).default([]),
  /** The rendered prompt. */
  system: LongText,
  temperature: z.number().min(0).max(2).optional(),
  outputTokensMax: z.int().positive().optional(),
  harness: HarnessSettings.prefault({}),
  permissions: PermissionRules.default({}),
  /** Rules of a preset. They override the agent's own rules, and also apply to every agent it delegates to. */
  floor: PermissionRules.default({}),
  guardian: GuardianSettings.optional(),
  hooks: z
    .strictObject({ before: z.array(HookCommand).max(HOOKS_MAX).default([]), after: z.array(HookCommand).max(HOOKS_MAX).default([]) })
    .prefault({}),
  mcp: recordOf(z.string().regex(/^[A-Za-z0-9_-]{1,32}$/), McpServer, 32).default({}),
  /** Some fields are in every stored definition; the others only if they were set. */
  sandbox: z.strictObject(settingsShape(["limits", "allowRoot", "env", "network", "secrets", "secretNames", "stationAccess"])).prefault({}),
  workspace: z
    .strictObject({
      scope: z.enum(["run", "session", "workflow"]).default("run"),
      cleanup: z.enum(["always", "on_success", "never"]).default("never"),
    })
    .prefault({}),
  /** Folders with SKILL.md files, and files whose text is always in the context, relative to the workspace. */
  skills: z.array(PathText).max(NAMES_MAX).default([]),
  memory: z.array(PathText).max(NAMES_MAX).default(["AGENTS.md"]),
});

export const AgentDefinition = OneAgent.extend({
  /** The agents it may delegate to, directly or indirectly, by name, as they were when the run began. */
  subAgents: recordOf(ToolText, OneAgent, NAMES_MAX).default({}),
});
export type SubAgentDefinition = z.infer<typeof OneAgent>;
export type AgentDefinition = z.infer<typeof AgentDefinition>;
