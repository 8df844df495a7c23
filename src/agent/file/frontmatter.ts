import { z } from "zod";
import { HookCommand, McpServer } from "../../contract/agent/agent.ts";
import { GuardianAction } from "../../contract/guardian/guardian-config.ts";
import { PermissionPreset, PermissionRules } from "../../contract/harness/harness.ts";
import { EnvName } from "../../contract/ids.ts";
import { GatewayConfig, GatewayWire, SecretConfig } from "../../contract/network/network.ts";
import { type FieldText, fieldOptions, limitFieldOptions, type ReadAs } from "../../contract/sandbox/sandbox-field-options.ts";
import { bytesFrom, durationFrom, numberFrom } from "../../lib/quantity.ts";

const Duration = z
  .custom<string | number>((value) => isQuantity(value, durationFrom), "is not a duration such as 30m or 90s")
  .describe("such as 30m or 90s; a bare number is seconds");
const Size = z
  .custom<string | number>((value) => isQuantity(value, bytesFrom), "is not a size such as 4g or 512m")
  .describe("such as 4g or 512m");
const Count = z
  .custom<string | number>((value) => isQuantity(value, numberFrom), "is not a number such as 1.5")
  .describe("such as 2 or 1.5");

function isQuantity(value: unknown, parse: (text: string) => number | null): boolean {
  return (typeof value === "string" || typeof value === "number") && parse(String(value)) !== null;
}

const DoomLoop = z.strictObject({
  threshold: z.int().min(2).max(50).optional(),
  action: z.enum(["summarize", "pause", "fail"]).optional(),
});
const Compaction = z.strictObject({
  enabled: z.boolean().optional(),
  threshold: z.number().min(0.1).max(0.95).optional(),
  protect_tokens: z.int().min(0).optional(),
  history_offload: z.boolean().optional().describe("always on: the log keeps the whole history"),
});
/** The schemas of the fields that need no separate parser. */
const written: Readonly<Record<Exclude<ReadAs, "own">, z.ZodType>> = {
  switch: z.boolean(),
  text: z.string(),
  list: z.array(z.string()),
  bytes: Size,
  count: z.int().positive(),
  number: Count,
  duration: Duration,
};

function plainKeys(table: Readonly<Record<string, FieldText>>): Record<string, z.ZodOptional<z.ZodType>> {
  const plain = Object.values(table).flatMap(({ reads, keys }) =>
    reads === "own" ? [] : keys.map((key) => [key, written[reads].optional()]),
  );
  return Object.fromEntries(plain);
}

const Sandbox = z.strictObject({
  ...plainKeys(fieldOptions),
  ...plainKeys(limitFieldOptions),
  image: z.string().optional(),
  template: z.string().optional().describe("host, a template, or an image"),
  network: z
    .union([
      z.string(),
      z.boolean(),
      z.array(z.string()),
      z.strictObject({ enabled: z.boolean().optional(), allowed_hosts: z.array(z.string()).optional() }),
    ])
    .optional()
    .describe("none, open, registries, or rules such as github.com and 'GET api.github.com/repos'; true is open"),
  secrets: z
    .union([z.array(EnvName), z.record(EnvName, z.union([z.string(), SecretConfig]))])
    .optional()
    .describe("names of secrets from your configuration; or for each variable its hosts, or all its settings"),
  gateway: z.union([z.array(GatewayWire), GatewayConfig]).optional(),
  env: z.record(EnvName, z.string()).optional(),
  environment: z.record(EnvName, z.string()).optional().describe("the older name of env"),
});
const HarnessConfig = z.strictObject({
  max_steps: z.int().min(1).max(100_000).optional(),
  doom_loop_threshold: z.int().min(2).max(50).optional(),
  timeout: Duration.optional(),
  retries: z.int().min(0).max(100).optional(),
  on_outage: z.enum(["pause", "stop"]).optional(),
  on_budget: z.enum(["ask", "stop"]).optional(),
  on_ask: z.enum(["wait", "deny"]).optional(),
  sandbox: Sandbox.optional(),
});

/** The frontmatter of an agent file. Unknown keys are errors: a misspelled limit must not be ignored silently. */
export const Frontmatter = z.strictObject({
  name: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, "letters, digits, dots, dashes and underscores")
    .optional(),
  variant: z.string().optional(),
  description: z.string().max(2000).optional(),
  model: z.string().min(1).optional(),
  tools: z.array(z.string().min(1)).optional(),
  agents: z.array(z.string().min(1)).optional(),
  input: z.strictObject({ schema: z.unknown().optional(), default: z.record(z.string(), z.unknown()).optional() }).optional(),
  config: z.object({ temperature: z.number().min(0).max(2).optional(), maxOutputTokens: z.int().positive().optional() }).optional(),
  harness: z
    .union([
      z.literal("agentic"),
      HarnessConfig.extend({
        enabled: z.boolean().optional(),
        doom_loop: DoomLoop.optional(),
        compaction: Compaction.optional(),
        progress: z
          .strictObject({ file: z.string().optional(), sync_interval: Duration.optional() })
          .optional()
          .describe("for agents of other systems; ignored here, because the todo list and the log show the progress"),
      }).strict(),
    ])
    .optional(),
  harness_config: HarnessConfig.optional(),
  doom_loop: DoomLoop.optional(),
  compaction: Compaction.optional(),
  sandbox: Sandbox.optional(),
  workspace: z
    .strictObject({
      mode: z.never("is not supported: a workspace is always copy-on-write; remove it, and see scope and cleanup").optional(),
      scope: z.enum(["run", "session", "workflow"]).optional(),
      cleanup: z.enum(["always", "on_success", "never"]).optional(),
    })
    .optional(),
  permissions: z.union([PermissionRules, PermissionPreset, z.tuple([PermissionPreset, PermissionRules])]).optional(),
  guardian: z
    .union([z.boolean(), z.enum(["on", "off"]), z.strictObject({ enabled: z.boolean().optional(), at_most: GuardianAction.optional() })])
    .optional()
    .describe("on, off, or the strongest action it may take"),
  hooks: z.strictObject({ before: z.array(HookCommand).optional(), after: z.array(HookCommand).optional() }).optional(),
  mcp: z.record(z.string(), McpServer).optional(),
  skills: z.union([z.array(z.string()), z.strictObject({ sources: z.array(z.string()) })]).optional(),
  memory: z.union([z.array(z.string()), z.strictObject({ sources: z.array(z.string()) })]).optional(),
});
export type Frontmatter = z.infer<typeof Frontmatter>;
