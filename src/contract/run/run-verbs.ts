import { z } from "zod";
import { AgentDefinition } from "../agent/agent.ts";
import { LongText, PathText, recordOf } from "../bounded.ts";
import { OnAsk, OnBudget, PermissionPreset, PermissionRules } from "../harness/harness.ts";
import { HealthLevel } from "../health/health-level.ts";
import { ChosenName, Labels, RunId, RuntimeName, SandboxId, SessionId } from "../ids.ts";
import { JsonValue } from "../json-value.ts";
import { created, LabelsAsked, owned } from "../label/list-filter.ts";
import { Usage } from "../model/usage.ts";
import { FinishReason } from "../outcome.ts";
import { MOUNTS_MAX, settingsShape, UploadedMount } from "../sandbox/sandbox-fields.ts";
import { SessionCleanup, WorkspaceSource } from "../session/session.ts";
import { Step } from "../session/session-verbs.ts";
import { Owner } from "../token/owner.ts";
import { FolderOrigin, MachineId } from "../upload/upload.ts";
import { Budgets, MessageId, MessageMode, MessageSource, QuestionId } from "./run.ts";
import { Priority, QueuePlace } from "./run-queue.ts";

/** Arguments and answers of the station's verbs for runs. */

/** Settings that the caller chooses over the agent file; none of them needs trust. */
export const RunSettings = z.strictObject({
  ...settingsShape(["limits", "env", "mounts", "secrets", "secretNames"]),
  runtime: z.string().min(1).max(100).optional(),
  ociRuntime: PathText.optional(),
  /**
   * The snapshot from which the session's first sandbox starts, by id or name. The workspace still comes from the
   * session.
   */
  snapshot: z.string().min(1).max(200).optional(),
  /** Folders that were uploaded to the station, in addition to the mounts. */
  uploadedMounts: z.array(UploadedMount).max(MOUNTS_MAX).default([]),
  maxSteps: z.int().min(1).max(100_000).optional(),
  timeoutMs: z.int().min(1000).optional(),
  onAsk: OnAsk.optional(),
  onBudget: OnBudget.optional(),
  /** Added to the agent's own rules. */
  permissions: z.union([PermissionPreset, PermissionRules]).default({}),
  /** Whether the guardian monitors the run, overriding the agent. */
  guardian: z.enum(["on", "off"]).optional(),
});
export type RunSettings = z.infer<typeof RunSettings>;

/** What a run does, with which agent and model, and where. */
export const StartRun = z.strictObject({
  task: LongText.trim().min(1, "must not be empty"),
  /** Works like the run's id, until a later run takes the name after this one's end. */
  name: ChosenName.optional(),
  labels: Labels.default({}),
  /** The parent span in traces, as a W3C `traceparent`. */
  traceparent: z
    .string()
    .regex(/^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/, "must look like 00-TRACE-SPAN-01")
    .optional(),
  /** An agent's name, the path of its file, or its definition, which the caller trusts. */
  agent: z.union([PathText, AgentDefinition]).default("coder"),
  /** Whether the caller trusts the agent file; otherwise its rights need `caisson trust`. */
  trustAgentFile: z.boolean().default(false),
  /** Values for the template in the agent file. */
  input: recordOf(z.string().max(200), JsonValue, 1000).default({}),
  /** Default: the agent's own model, or the station's. */
  model: z.string().min(1).max(500).optional(),
  /** A file for recording the model's output, or one to replay. Absolute. */
  record: PathText.optional(),
  replay: PathText.optional(),
  /** The session to use, and its scope. Absent: a new session for this run. */
  session: z.strictObject({ id: SessionId, scope: z.enum(["session", "workflow"]).default("session") }).optional(),
  /**
   * When the session is removed. Replaces what the agent's file says; an existing session keeps the new value. A new
   * session whose agent says nothing stays.
   */
  cleanup: SessionCleanup.optional(),
  /**
   * Instead of a source: a new session begins with the files of this session or run, either current or after a step.
   */
  from: z.strictObject({ session: z.string().min(1).max(256), at: Step.optional() }).optional(),
  /** The source of a new session; default an empty workspace. */
  source: WorkspaceSource.optional(),
  /**
   * Whether the user named the source folder. A folder that is merely the current one is refused if it is probably a
   * mistake.
   */
  sourceNamed: z.boolean().default(true),
  budgets: Budgets.default({}),
  settings: RunSettings.prefault({}),
  /**
   * Whether someone is available to answer. Otherwise, unless the settings differ, questions are denied, and an
   * exhausted budget ends the run.
   */
  attended: z.boolean().default(false),
  /** Drive the run in the background: by the station if one is running, otherwise in a separate process. */
  detached: z.boolean().default(false),
  /** If a station drives it: the priority among the owner's waiting runs; higher runs first. Default 0. */
  priority: Priority.optional(),
  /** If a station drives it: the earliest start. */
  startAt: z.iso.datetime({ offset: true }).max(40).optional(),
});
export type StartRun = z.infer<typeof StartRun>;
export type StartRunInput = z.input<typeof StartRun>;

/** A run as plain data, the same for every caller. */
export const RunView = z.object({
  run: RunId,
  /** The name that the starter chose. */
  name: z.string().nullable(),
  /** The run's owner. */
  owner: Owner,
  labels: Labels,
  session: z.string(),
  /** The folder that its session works on; null if the source is another kind, or the session was removed. */
  folder: z.string().nullable(),
  /** The original place of the folder, if it was sent from another machine. */
  origin: FolderOrigin.nullable(),
  parent: z.object({ run: z.string(), call: z.string() }).nullable(),
  /**
   * The run whose conversation it continues, the number of steps, and the last event that they share. `isTail`: it
   * preserves what a rewind of that run took back.
   */
  forked: z.object({ run: z.string(), step: z.int(), seq: z.int(), isTail: z.boolean() }).nullable(),
  agent: z.string(),
  model: z.string(),
  /** The task, or its first thousand characters. */
  title: z.string(),
  /**
   * `queued`: waits for a station to drive it. `interrupted`: not ended, but no process drives it. `damaged`: its log
   * cannot be read completely; the view covers the readable part.
   */
  status: z.enum(["created", "queued", "running", "paused", "interrupted", "ended", "damaged"]),
  /** Its place in the queue while it is queued. */
  queue: QueuePlace.nullable(),
  paused: z.object({ why: z.string(), text: z.string() }).nullable(),
  finish: FinishReason.nullable(),
  /** The damage found in its log. */
  damage: z.string().nullable(),
  sandbox: z.object({ id: SandboxId, runtime: z.string() }).nullable(),
  /** The health of its driver or its sandbox, whichever is worse, as a station last saw it. */
  health: HealthLevel,
  steps: z.int().nonnegative(),
  usage: Usage,
  /** Null if any price is unknown. */
  costUsd: z.number().nullable(),
  workedMs: z.number().nonnegative(),
  budgets: Budgets,
  /** Limits for steps and time if the budgets have none. */
  bounds: z.object({ steps: z.int(), timeMs: z.int() }),
  /** Unanswered questions. */
  asked: z.array(z.object({ question: QuestionId, kind: z.enum(["tool", "budget", "stuck"]), text: z.string() })),
  /** The sequence of the last event that this view includes. */
  seq: z.int().nonnegative(),
  createdAt: z.string(),
  updatedAt: z.string(),
});
export type RunView = z.infer<typeof RunView>;

const RUNS_PER_PAGE_MAX = 10_000;

/** Filters runs. Absent members do not filter. */
export const ListRuns = z.strictObject({
  state: z.enum(["open", "ended"]).optional(),
  finish: z.array(FinishReason).max(50).optional(),
  /** An id prefix such as `run_k3v`. */
  id: z
    .string()
    .regex(/^run_[a-z2-7]{0,12}$/, "must begin with run_")
    .optional(),
  name: z.string().max(64).optional(),
  agent: z.string().min(1).max(256).optional(),
  model: z.string().min(1).max(256).optional(),
  /** The runtime of their last sandbox. */
  runtime: RuntimeName.optional(),
  label: LabelsAsked.optional(),
  /** A text in their tasks or names, ignoring case. Runs are searched one by one, newest first. */
  text: z.string().min(1).max(200).optional(),
  ...owned,
  ...created,
  updatedAfter: created.createdAfter,
  updatedBefore: created.createdBefore,
  session: SessionId.optional(),
  /**
   * Only runs in existing sessions on this folder, with links resolved; without such runs, on the nearest parent folder
   * with sessions. Absolute.
   */
  folder: PathText.optional(),
  /** The machine that the folder was sent from; absent: the station's own. */
  machine: MachineId.optional(),
  /** Only sub-runs of this run; null: only runs without a parent. */
  parent: RunId.nullable().optional(),
  /** The `next` of an earlier answer. */
  cursor: z.string().max(500).optional(),
  limit: z.int().min(1).max(RUNS_PER_PAGE_MAX).default(1000),
});
export type ListRuns = z.input<typeof ListRuns>;

/**
 * Last changed first. A run that changes between two pages moves to the front, so a client that must not miss one
 * subscribes to events.
 */
export const RunList = z.object({
  runs: z.array(RunView),
  /** The total over all pages, as far as it was counted. */
  total: z.int().nonnegative(),
  /** Whether there may be more than `total`. */
  totalIsMinimum: z.boolean(),
  /** Cursor for the next page; null at the end. */
  next: z.string().nullable(),
});
export type RunList = z.infer<typeof RunList>;

export const SendMessage = z.strictObject({
  text: LongText.min(1),
  mode: MessageMode.default("steer"),
  source: MessageSource.default("user"),
});
export type SendMessage = z.input<typeof SendMessage>;
export const SentMessage = z.object({ message: MessageId });
export type SentMessage = z.infer<typeof SentMessage>;

/** The next turn of a finished run. */
export const ContinueRun = z.strictObject({
  text: LongText.trim().min(1, "must not be empty"),
  by: z.string(),
  /** Absent: unchanged. */
  model: z.string().min(1).max(500).optional(),
  /**
   * Limits for the next turn, on top of what was spent. Steps and time default to the agent's limits; cost and token
   * limits still apply to the whole run.
   */
  budgets: Budgets.default({}),
  /** As for a new run: whether someone is available to answer. */
  attended: z.boolean().default(false),
  onAsk: OnAsk.optional(),
  onBudget: OnBudget.optional(),
  /** Drive the run in the background: by the station if one is running, otherwise in a separate process. */
  detached: z.boolean().default(false),
});
export type ContinueRun = z.infer<typeof ContinueRun>;
export type ContinueRunInput = z.input<typeof ContinueRun>;

/** The most forks of one request. */
const FORKS_MAX = 100;

/** Copies of a run after a step, which continue on their own. */
export const ForkRun = z.strictObject({
  /** The number of steps; absent: the last that has finished. */
  at: Step.optional(),
  count: z.int().min(1).max(FORKS_MAX).default(1),
  by: z.string(),
  /**
   * The first message to each fork. Without one, a fork waits for a message unless the step was in the middle of a
   * turn.
   */
  text: LongText.trim().min(1, "must not be empty").optional(),
  /** Absent: that of the run after the step. */
  model: z.string().min(1).max(500).optional(),
  /** The name of the fork. Several forks get it with a number: NAME-1, NAME-2 … */
  name: ChosenName.optional(),
  /** In addition to the run's own labels. */
  labels: Labels.default({}),
  /** Limits of each fork, in place of what the run had left. */
  budgets: Budgets.default({}),
  /** As for a new run: whether someone is available to answer. */
  attended: z.boolean().default(false),
  onAsk: OnAsk.optional(),
  onBudget: OnBudget.optional(),
  /** Drive the forks in the background: by the station if one is running, otherwise each in a separate process. */
  detached: z.boolean().default(false),
});
export type ForkRun = z.infer<typeof ForkRun>;
export type ForkRunInput = z.input<typeof ForkRun>;
export const ForkedRuns = z.object({ runs: z.array(RunView) });

export const RewindRun = z.strictObject({
  /** The number of steps that remain; 0: none. */
  to: Step,
});
export const RewoundRun = z.object({
  run: RunView,
  /** The fork that preserves what was taken back. */
  tail: RunId,
  /** The files that changed back, at most the first thousand. */
  files: z.array(z.string()),
});
export type RewoundRun = z.infer<typeof RewoundRun>;

export const AnswerQuestion = z.strictObject({
  /** Absent: the oldest open question. */
  question: QuestionId.optional(),
  answer: z.enum(["allow", "always", "deny"]),
  text: LongText.optional(),
  /** New limits, if a budget question is answered with yes. Limits that are not given increase by half. */
  budgets: Budgets.optional(),
  by: z.string(),
});
export type AnswerQuestion = z.infer<typeof AnswerQuestion>;

/** A damaged part of the log. */
export const LogDamage = z.object({ stream: z.string().nullable(), fromSeq: z.int().nullable(), text: z.string() });
export type LogDamage = z.infer<typeof LogDamage>;
