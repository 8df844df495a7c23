import { z } from "zod";
import { recordOf } from "../bounded.ts";

/** How an agent works: its limits, and which tool calls need no approval. */

/** What happens to a call that needs approval, and to a run that has used up its budget. */
export const OnAsk = z.enum(["wait", "deny"]);
export const OnBudget = z.enum(["ask", "stop"]);

export const Permission = z.enum(["allow", "ask", "deny"]);
export type Permission = z.infer<typeof Permission>;

export const DoomLoopAction = z.enum(["summarize", "pause", "fail"]);

export const HarnessSettings = z.strictObject({
  maxSteps: z.int().min(1).max(100_000).default(50),
  timeoutMs: z
    .int()
    .min(1000)
    .default(30 * 60_000),
  /** What happens when a budget is used up: ask a person, or end the run. */
  onBudget: OnBudget.default("ask"),
  /** What happens when a permission says `ask`: wait for a person, or deny the call. */
  onAsk: OnAsk.default("wait"),
  doomLoop: z.strictObject({ threshold: z.int().min(2).max(50).default(3), action: DoomLoopAction.default("pause") }).prefault({}),
  compaction: z
    .strictObject({
      enabled: z.boolean().default(true),
      /** Fraction of the model's context window. */
      threshold: z.number().min(0.1).max(0.95).default(0.85),
      protectTokens: z.int().min(0).default(40_000),
    })
    .prefault({}),
  /** Retries of a model call after a temporary failure. The pauses grow to a minute: sixteen take about ten minutes. */
  retries: z.int().min(0).max(100).default(16),
  /** What happens then: `pause` until the run is resumed or the provider is back, or `stop` with an error. */
  onOutage: z.enum(["pause", "stop"]).default("pause"),
});
export type HarnessSettings = z.infer<typeof HarnessSettings>;

/** Limited because every tool call is compared with every rule. */
export const PERMISSION_RULES_MAX = 500;
export const PermissionRules = recordOf(z.string().min(1).max(500), Permission, PERMISSION_RULES_MAX);
export type PermissionRules = z.infer<typeof PermissionRules>;

/** Named sets of rules. `strict`: also denies or asks about calls that lose work inside the sandbox. */
export const PermissionPreset = z.enum(["strict"]);
export type PermissionPreset = z.infer<typeof PermissionPreset>;
