import { z } from "zod";
import { ENV_CHARACTERS_MAX, LongText, PATH_CHARACTERS_MAX, PathText, recordOf, SECRETS_MAX } from "./bounded.ts";
import { GuardianAction } from "./guardian-config.ts";
import { EnvName, SnapshotId } from "./ids.ts";
import { ImageText } from "./image-text.ts";
import { GatewaySpec, NetworkPolicy, SecretSpec } from "./network.ts";
import { OnAsk, OnBudget, Permission } from "./run.ts";
import { FolderMount, LimitsRequest, MOUNTS_MAX } from "./sandbox.ts";
import { FolderGuard } from "./workspace-guard.ts";

/** What an agent is once its file, the config and the flags have been put together. Stored with each run. */

/** Of tools, agents, variables, files: more than anyone writes. */
const NAMES_MAX = 1000;
const HOOKS_MAX = 100;
const ToolText = z.string().max(PATH_CHARACTERS_MAX);

export const DoomLoopAction = z.enum(["summarize", "pause", "fail"]);

export const HarnessSettings = z.strictObject({
  maxSteps: z.int().min(1).max(100_000).default(50),
  timeoutMs: z
    .int()
    .min(1000)
    .default(30 * 60_000),
  /** What happens when a budget is reached: ask a person, or end. */
  onBudget: OnBudget.default("ask"),
  /** What happens where a permission says `ask`: wait for a person, or deny. */
  onAsk: OnAsk.default("wait"),
  doomLoop: z.strictObject({ threshold: z.int().min(2).max(50).default(3), action: DoomLoopAction.default("pause") }).prefault({}),
  compaction: z
    .strictObject({
      enabled: z.boolean().default(true),
      /** Of the model's window. */
      threshold: z.number().min(0.1).max(0.95).default(0.85),
      protectTokens: z.int().min(0).default(40_000),
    })
    .prefault({}),
  /** Of a model call that failed for now. The pauses grow to a minute: sixteen of them take about ten minutes. */
  retries: z.int().min(0).max(100).default(16),
  /** After that: `pause` until somebody resumes the run or the provider is back, or `stop` with an error. */
  onOutage: z.enum(["pause", "stop"]).default("pause"),
});
export type HarnessSettings = z.infer<typeof HarnessSettings>;

/**
 * A command run inside the sandbox before or after a tool. It reads the call as JSON on stdin. Exit 0 continues, 2
 * blocks with stderr as the reason, 3 interrupts the run.
 */
export const HookCommand = z.strictObject({
  /** Tool names this hook is for; absent: all. */
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

/** Every call of a tool is compared with each of them. */
export const PERMISSION_RULES_MAX = 500;
export const PermissionRules = recordOf(z.string().min(1).max(500), Permission, PERMISSION_RULES_MAX);
export type PermissionRules = z.infer<typeof PermissionRules>;

/** Rules that have a name. `strict`: what loses work inside the sandbox is denied or asked about as well. */
export const PermissionPreset = z.enum(["strict"]);
export type PermissionPreset = z.infer<typeof PermissionPreset>;

/** What an agent's file, or whoever starts a run, says about the guardian; absent: what the station does anyway. */
export const GuardianSettings = z.strictObject({ enabled: z.boolean().optional(), atMost: GuardianAction.optional() });
export type GuardianSettings = z.infer<typeof GuardianSettings>;

const OneAgent = z.strictObject({
  name: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/),
  description: LongText.default(""),
  model: z.string().max(500).optional(),
  /** Names of tools, or `mcp:SERVER` for all of a server's. Absent: all built-in ones. */
  tools: z.array(ToolText).max(NAMES_MAX).optional(),
  /** Agents it may hand work to. */
  agents: z.array(ToolText).max(NAMES_MAX).default([]),
  /** The rendered prompt. */
  system: LongText,
  temperature: z.number().min(0).max(2).optional(),
  outputTokensMax: z.int().positive().optional(),
  harness: HarnessSettings.prefault({}),
  permissions: PermissionRules.default({}),
  /** Of a preset: they hold whatever its own rules say, and for everyone it hands work to. */
  floor: PermissionRules.default({}),
  guardian: GuardianSettings.optional(),
  hooks: z
    .strictObject({ before: z.array(HookCommand).max(HOOKS_MAX).default([]), after: z.array(HookCommand).max(HOOKS_MAX).default([]) })
    .prefault({}),
  mcp: recordOf(z.string().regex(/^[A-Za-z0-9_-]{1,32}$/), McpServer, 32).default({}),
  sandbox: z
    .strictObject({
      runtime: z.string().max(100).optional(),
      ociRuntime: z.string().max(PATH_CHARACTERS_MAX).optional(),
      image: ImageText.optional(),
      snapshot: SnapshotId.optional(),
      limits: LimitsRequest.prefault({}),
      allowRoot: z.boolean().default(false),
      env: recordOf(EnvName, z.string().max(ENV_CHARACTERS_MAX), NAMES_MAX).default({}),
      network: NetworkPolicy.default({ mode: "none" }),
      secrets: recordOf(EnvName, SecretSpec, SECRETS_MAX).default({}),
      /**
       * Secrets it wants of those that the user's own configuration defines; they are in `secrets`, too, once it may
       * have them.
       */
      secretNames: z.array(EnvName).max(100).default([]),
      gateway: GatewaySpec.optional(),
      stationAccess: z.boolean().default(false),
      /** Further folders of the user's, and how they are looked at; absent: they are shown as they are. */
      mounts: z.array(FolderMount).max(MOUNTS_MAX).optional(),
      mountGuard: FolderGuard.optional(),
    })
    .prefault({}),
  workspace: z
    .strictObject({
      scope: z.enum(["run", "session", "workflow"]).default("run"),
      cleanup: z.enum(["always", "on_success", "never"]).default("never"),
    })
    .prefault({}),
  /** Folders with SKILL.md files, and files whose text is always in sight, relative to the workspace. */
  skills: z.array(PathText).max(NAMES_MAX).default([]),
  memory: z.array(PathText).max(NAMES_MAX).default(["AGENTS.md"]),
});

export const AgentDefinition = OneAgent.extend({
  /** The agents it may hand work to, and theirs, by name: as they were when the run began. */
  subAgents: recordOf(ToolText, OneAgent, NAMES_MAX).default({}),
});
export type SubAgentDefinition = z.infer<typeof OneAgent>;
export type AgentDefinition = z.infer<typeof AgentDefinition>;
