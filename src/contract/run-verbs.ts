import { z } from "zod";
import { SandboxId } from "./ids.ts";
import { Budgets, FinishReason, MessageId, MessageMode, MessageSource, QuestionId, RunId, SessionId } from "./run.ts";
import { WorkspaceSource } from "./session.ts";
import { Usage } from "./usage.ts";

/** Arguments and answers of the station's verbs about runs. */

/** What a run is to do, with what, and where. */
export const StartRun = z.strictObject({
  task: z.string().min(1),
  /** An agent's name or the path of its file. */
  agent: z.string().min(1).default("coder"),
  /** Values for the template of the agent's file. */
  input: z.record(z.string(), z.json()).default({}),
  /** Absent: the agent's own, or the station's default. */
  model: z.string().min(1).optional(),
  /** Absent: a session of the run's own. */
  session: SessionId.optional(),
  /** Absent: the named session's, or an empty workspace. */
  source: WorkspaceSource.optional(),
  budgets: Budgets.default({}),
});
export type StartRun = z.infer<typeof StartRun>;
export type StartRunInput = z.input<typeof StartRun>;

/** A run as it is shown: plain data, whatever process asks. */
export const RunView = z.object({
  run: RunId,
  session: SessionId,
  parent: z.object({ run: RunId, call: z.string() }).nullable(),
  agent: z.string(),
  model: z.string(),
  /** The task, or its beginning. */
  title: z.string(),
  status: z.enum(["created", "running", "paused", "interrupted", "ended", "damaged"]),
  paused: z.object({ why: z.string(), text: z.string() }).nullable(),
  finish: FinishReason.nullable(),
  sandbox: z.object({ id: SandboxId, runtime: z.string() }).nullable(),
  steps: z.int().nonnegative(),
  usage: Usage,
  /** Null once the price of something is not known. */
  costUsd: z.number().nullable(),
  workedMs: z.number().nonnegative(),
  budgets: Budgets,
  /** Questions that nobody has answered. */
  asked: z.array(z.object({ question: QuestionId, kind: z.enum(["tool", "budget", "stuck"]), text: z.string() })),
  createdAt: z.string(),
  updatedAt: z.string(),
});
export type RunView = z.infer<typeof RunView>;

export const ListRuns = z.strictObject({ openMax: z.int().nonnegative().default(1000), endedMax: z.int().nonnegative().default(10) });
export type ListRuns = z.input<typeof ListRuns>;

/** Newest first: those that are not over, then those that are; `left` counts what is not shown. */
export const RunList = z.object({
  runs: z.array(RunView),
  left: z.object({ open: z.int().nonnegative(), ended: z.int().nonnegative() }),
});
export type RunList = z.infer<typeof RunList>;

export const SendMessage = z.strictObject({
  text: z.string().min(1),
  mode: MessageMode.default("steer"),
  source: MessageSource.default("user"),
});
export type SendMessage = z.input<typeof SendMessage>;
export const SentMessage = z.object({ message: MessageId });
export type SentMessage = z.infer<typeof SentMessage>;

export const AnswerQuestion = z.strictObject({
  /** Absent: the oldest one that is open. */
  question: QuestionId.optional(),
  answer: z.enum(["allow", "always", "deny"]),
  text: z.string().optional(),
  /** Of a question about a budget that is allowed: the new ones. Absent: half as much again of each. */
  budgets: Budgets.optional(),
  by: z.string(),
});
export type AnswerQuestion = z.infer<typeof AnswerQuestion>;
