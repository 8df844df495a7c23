import { z } from "zod";
import { JsonValue } from "../json-value.ts";

const base32Id = (prefix: string) => new RegExp(`^${prefix}_[a-z2-7]{12}$`);

/**
 * Identifies a model call (`m12`) or tool call (`t12.1`) of a run. With the run as a prefix it is also the guest's
 * process ref.
 */
export const CallId = z.string().regex(/^[mt][0-9]{1,9}(\.[0-9]{1,4})?$/);
export type CallId = z.infer<typeof CallId>;

export const MessageId = z.string().regex(base32Id("msg"));
export type MessageId = z.infer<typeof MessageId>;

export const QuestionId = z.string().regex(base32Id("ask"));
export type QuestionId = z.infer<typeof QuestionId>;

/** Limits for a run including its sub-runs. Absent means unlimited, except for steps and time, which have defaults. */
export const Budgets = z.object({
  costUsd: z.number().positive().optional(),
  tokens: z.int().positive().optional(),
  steps: z.int().positive().optional(),
  timeMs: z.int().positive().optional(),
});
export type Budgets = z.infer<typeof Budgets>;

/** Parts of an assistant message: text, thoughts and tool calls, in order. */
export const AssistantPart = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("text"), text: z.string() }),
  /** `provider` holds data that the provider needs back, such as a signature. */
  z.object({ kind: z.literal("thought"), text: z.string(), provider: JsonValue.optional() }),
  z.object({
    kind: z.literal("toolCall"),
    call: CallId,
    providerCall: z.string(),
    name: z.string(),
    arguments: JsonValue,
    /** The model's arguments if they were not valid JSON; `arguments` is then empty. */
    badArguments: z.string().optional(),
    /** Data that the provider needs back, as with thoughts. */
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

export const TodoList = z.array(
  z.object({
    id: z.string().min(1).max(64),
    text: z.string().min(1).max(2000),
    status: z.enum(["pending", "in_progress", "completed"]),
    blockedBy: z.array(z.string()).max(50).default([]),
  }),
);
export type TodoList = z.infer<typeof TodoList>;
