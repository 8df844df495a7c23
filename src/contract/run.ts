import { z } from "zod";
import { JsonValue } from "./json-value.ts";

const base32Id = (prefix: string) => new RegExp(`^${prefix}_[a-z2-7]{12}$`);

export const RunId = z.string().regex(base32Id("run"), "a run id looks like run_k3v7q2m5x4ab");
export type RunId = z.infer<typeof RunId>;

/** Chosen by a person or made from the run's id; also a folder name. */
export const SessionId = z
  .string()
  .regex(/^[a-z0-9][a-z0-9._-]{0,63}$/, "1 to 64 lower-case letters, digits, dots, dashes or underscores, not beginning with a dot");
export type SessionId = z.infer<typeof SessionId>;

/**
 * Names one model call (`m12`) or one tool call (`t12.1`) of a run; also the guest's process ref, prefixed by the run.
 */
export const CallId = z.string().regex(/^[mt][0-9]{1,9}(\.[0-9]{1,4})?$/);
export type CallId = z.infer<typeof CallId>;

export const MessageId = z.string().regex(base32Id("msg"));
export type MessageId = z.infer<typeof MessageId>;

export const QuestionId = z.string().regex(base32Id("ask"));
export type QuestionId = z.infer<typeof QuestionId>;

/** How a run can end. `budget` only when a person declined to raise it. */
export const FinishReason = z.enum(["done", "max_steps", "timeout", "budget", "cancelled", "stuck", "error"]);
export type FinishReason = z.infer<typeof FinishReason>;

/** Bounds of a run and all its sub-runs. Absent means unbounded, except steps and time, which have defaults. */
export const Budgets = z.object({
  costUsd: z.number().positive().optional(),
  tokens: z.int().positive().optional(),
  steps: z.int().positive().optional(),
  timeMs: z.int().positive().optional(),
});
export type Budgets = z.infer<typeof Budgets>;

/** What becomes of a call that a person has to be asked about, and of a run whose budget is reached. */
export const OnAsk = z.enum(["wait", "deny"]);
export const OnBudget = z.enum(["ask", "stop"]);

/** What an assistant says: words, thoughts, and tools it asks for, in order. */
export const AssistantPart = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("text"), text: z.string() }),
  /** `provider` carries what the provider wants to see again, such as a signature. */
  z.object({ kind: z.literal("thought"), text: z.string(), provider: JsonValue.optional() }),
  z.object({
    kind: z.literal("toolCall"),
    call: CallId,
    providerCall: z.string(),
    name: z.string(),
    arguments: JsonValue,
    /** What the model wrote when it was not JSON; the arguments are empty then. */
    badArguments: z.string().optional(),
    /** As with thoughts: what the provider wants to see again. */
    provider: JsonValue.optional(),
  }),
]);
export type AssistantPart = z.infer<typeof AssistantPart>;

export const ToolOutcome = z.enum(["ok", "error", "blocked", "denied", "interrupted", "lost"]);
export type ToolOutcome = z.infer<typeof ToolOutcome>;

export const MessageMode = z.enum(["steer", "queue", "interrupt"]);
export type MessageMode = z.infer<typeof MessageMode>;
export const MessageSource = z.enum(["user", "guardian", "system"]);
export type MessageSource = z.infer<typeof MessageSource>;

export const Permission = z.enum(["allow", "ask", "deny"]);
export type Permission = z.infer<typeof Permission>;

export const TodoList = z.array(
  z.object({
    id: z.string().min(1).max(64),
    text: z.string().min(1).max(2000),
    status: z.enum(["pending", "in_progress", "completed"]),
    blockedBy: z.array(z.string()).max(50).default([]),
  }),
);
export type TodoList = z.infer<typeof TodoList>;
