import { z } from "zod";
import { AgentDefinition, PermissionPreset, PermissionRules } from "./agent.ts";
import { ENV_CHARACTERS_MAX, LongText, PathText, recordOf, SECRETS_MAX } from "./bounded.ts";
import { AnyDrivenEvent, DrivenRef } from "./driven-kinds.ts";
import { HealthLevel } from "./health-level.ts";
import { ChosenName, EnvName, Labels, RuntimeName, SandboxId } from "./ids.ts";
import { ImageText } from "./image-text.ts";
import { JsonValue } from "./json-value.ts";
import { created, LabelsAsked, owned } from "./list-filter.ts";
import { GatewaySpec, NetworkPolicy, SecretSpec } from "./network.ts";
import { Owner } from "./owner.ts";
import { Budgets, FinishReason, MessageId, MessageMode, MessageSource, OnAsk, OnBudget, QuestionId, RunId, SessionId } from "./run.ts";
import { RunEvent } from "./run-event.ts";
import { Priority, QueuePlace } from "./run-queue.ts";
import { FolderMount, LimitsRequest, MOUNTS_MAX } from "./sandbox.ts";
import { SandboxLogEvent } from "./sandbox-log-event.ts";
import { WorkspaceSource } from "./session.ts";
import { Step } from "./session-verbs.ts";
import { FolderOrigin, MachineId } from "./upload.ts";
import { UploadedMount } from "./upload-verbs.ts";
import { Usage } from "./usage.ts";
import { FolderGuard } from "./workspace-guard.ts";

/** Arguments and answers of the station's verbs about runs. */

/** What the caller has the say in, whatever the agent's file wants there; nothing of it has to be trusted. */
export const RunSettings = z.strictObject({
  runtime: z.string().min(1).max(100).optional(),
  /** With the runtime `oci`: which OCI runtime, by name or path. */
  ociRuntime: PathText.optional(),
  image: ImageText.optional(),
  /** What the first sandbox of a session starts from, by id or name; the workspace is the session's all the same. */
  snapshot: z.string().min(1).max(200).optional(),
  limits: LimitsRequest.default({}),
  /** Added to the agent's own. */
  env: recordOf(EnvName, z.string().max(ENV_CHARACTERS_MAX), 1000).default({}),
  allowRoot: z.boolean().optional(),
  mounts: z.array(FolderMount).max(MOUNTS_MAX).default([]),
  /** Folders that were sent to the station, added to the mounts. */
  uploadedMounts: z.array(UploadedMount).max(MOUNTS_MAX).default([]),
  /** Absent: the mounted folders are shown as they are. */
  mountGuard: FolderGuard.optional(),
  network: NetworkPolicy.optional(),
  secrets: recordOf(EnvName, SecretSpec, SECRETS_MAX).default({}),
  /** Secrets that the station's configuration defines. */
  secretNames: z.array(EnvName).max(100).default([]),
  gateway: GatewaySpec.optional(),
  /** Whether programs in its sandbox reach the station; see `SandboxSpec`. */
  stationAccess: z.boolean().optional(),
  maxSteps: z.int().min(1).max(100_000).optional(),
  timeoutMs: z.int().min(1000).optional(),
  onAsk: OnAsk.optional(),
  onBudget: OnBudget.optional(),
  /** Added to the agent's own. */
  permissions: z.union([PermissionPreset, PermissionRules]).default({}),
  /** Whether the guardian watches it, whatever its agent says. */
  guardian: z.enum(["on", "off"]).optional(),
});
export type RunSettings = z.infer<typeof RunSettings>;

/** What a run is to do, with what, and where. */
export const StartRun = z.strictObject({
  task: LongText.trim().min(1, "there is no task"),
  /** Stands for the run's id from now on, until another one that is started after its end has it. */
  name: ChosenName.optional(),
  labels: Labels.default({}),
  /** The span that the run is below in traces: W3C's `traceparent`. */
  traceparent: z
    .string()
    .regex(/^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/, "a traceparent looks like 00-TRACE-SPAN-01")
    .optional(),
  /** An agent's name, the path of its file, or its definition, which the caller vouches for. */
  agent: z.union([PathText, AgentDefinition]).default("coder"),
  /** Whether the caller vouches for the agent's file; otherwise what it asks for must have been trusted. */
  trustAgentFile: z.boolean().default(false),
  /** Values for the template of the agent's file. */
  input: recordOf(z.string().max(200), JsonValue, 1000).default({}),
  /** Absent: the station's default, or the agent's own. */
  model: z.string().min(1).max(500).optional(),
  /** A file that gets what the model says, or one that stands in for the model. Absolute. */
  record: PathText.optional(),
  replay: PathText.optional(),
  /** The name under which the workspace is found again, and whose it is. Absent: a session of the run's own. */
  session: z.strictObject({ id: SessionId, scope: z.enum(["session", "workflow"]).default("session") }).optional(),
  /**
   * Begins with the files of this session, or of this run's, as they are or as they were after a step, in a session of
   * its own: in place of a source.
   */
  from: z.strictObject({ session: z.string().min(1).max(256), at: Step.optional() }).optional(),
  /** Of a new session; default an empty workspace. */
  source: WorkspaceSource.optional(),
  /**
   * Whether somebody named the folder that is the source; one that only happens to be the current folder is refused
   * where that is most likely a mistake.
   */
  sourceNamed: z.boolean().default(true),
  budgets: Budgets.default({}),
  settings: RunSettings.prefault({}),
  /**
   * Whether somebody is there to answer. Otherwise, unless the settings say so, what would be asked is denied, and a
   * budget that is reached ends the run.
   */
  attended: z.boolean().default(false),
  /** Driven in the background: by the station where one runs, else by a process of its own. */
  detached: z.boolean().default(false),
  /** Where a station drives it: among the owner's runs that wait, the higher, the sooner. Default 0. */
  priority: Priority.optional(),
  /** Where a station drives it: not before this time. */
  startAt: z.iso.datetime({ offset: true }).max(40).optional(),
});
export type StartRun = z.infer<typeof StartRun>;
export type StartRunInput = z.input<typeof StartRun>;

/** A run as it is shown: plain data, whatever process asks. */
export const RunView = z.object({
  run: RunId,
  /** Chosen by whoever started it. */
  name: z.string().nullable(),
  /** Whose it is. */
  owner: Owner,
  labels: Labels,
  session: z.string(),
  /** The folder that its session works on; null when that is another source, or the session is gone. */
  folder: z.string().nullable(),
  /** Where that folder is at home, if it was sent from another machine. */
  origin: FolderOrigin.nullable(),
  parent: z.object({ run: z.string(), call: z.string() }).nullable(),
  agent: z.string(),
  model: z.string(),
  /** The task, or its first thousand characters. */
  title: z.string(),
  /**
   * `queued`: a station drives it when there is room. `interrupted`: not over, and nobody drives it, whatever it waits
   * for. `damaged`: its log cannot be read to its end; the rest is of what could be.
   */
  status: z.enum(["created", "queued", "running", "paused", "interrupted", "ended", "damaged"]),
  /** Its place, of one that is queued. */
  queue: QueuePlace.nullable(),
  paused: z.object({ why: z.string(), text: z.string() }).nullable(),
  finish: FinishReason.nullable(),
  /** What was found wrong with its log. */
  damage: z.string().nullable(),
  sandbox: z.object({ id: SandboxId, runtime: z.string() }).nullable(),
  /** Of what drives it and of its sandbox, whichever is worse, as a station last saw it. */
  health: HealthLevel,
  steps: z.int().nonnegative(),
  usage: Usage,
  /** Null once the price of something is not known. */
  costUsd: z.number().nullable(),
  workedMs: z.number().nonnegative(),
  budgets: Budgets,
  /** What holds where the budgets say nothing. */
  bounds: z.object({ steps: z.int(), timeMs: z.int() }),
  /** Questions that nobody has answered. */
  asked: z.array(z.object({ question: QuestionId, kind: z.enum(["tool", "budget", "stuck"]), text: z.string() })),
  /** The number of the last event that is in this view. */
  seq: z.int().nonnegative(),
  createdAt: z.string(),
  updatedAt: z.string(),
});
export type RunView = z.infer<typeof RunView>;

const RUNS_PER_PAGE_MAX = 10_000;

/** Which runs; what is absent is not asked about. */
export const ListRuns = z.strictObject({
  state: z.enum(["open", "ended"]).optional(),
  finish: z.array(FinishReason).max(50).optional(),
  /** The beginning of their ids, such as `run_k3v`. */
  id: z
    .string()
    .regex(/^run_[a-z2-7]{0,12}$/, "an id begins with run_")
    .optional(),
  name: z.string().max(64).optional(),
  agent: z.string().min(1).max(256).optional(),
  model: z.string().min(1).max(256).optional(),
  /** Of their last sandbox. */
  runtime: RuntimeName.optional(),
  label: LabelsAsked.optional(),
  /** In their tasks or names, whatever the case. Runs are looked at one after the other for it, the newest first. */
  text: z.string().min(1).max(200).optional(),
  ...owned,
  ...created,
  updatedAfter: created.createdAfter,
  updatedBefore: created.createdBefore,
  session: SessionId.optional(),
  /**
   * In sessions that are still there and work on this folder, whatever links lead to it; where none does, on the
   * nearest folder above it that one works on. Absolute.
   */
  folder: PathText.optional(),
  /** The machine that the folder was sent from; absent: the station's own. */
  machine: MachineId.optional(),
  /** Sub-runs of this run; null: those that are nobody's. */
  parent: RunId.nullable().optional(),
  /** Where an earlier answer ended: its `next`. */
  cursor: z.string().max(500).optional(),
  limit: z.int().min(1).max(RUNS_PER_PAGE_MAX).default(1000),
});
export type ListRuns = z.input<typeof ListRuns>;

/**
 * The last changed first. A run that changes while somebody turns the pages moves to the front: who must not miss one
 * follows their events.
 */
export const RunList = z.object({
  runs: z.array(RunView),
  /** How many there are, on whatever page, as far as somebody counted. */
  total: z.int().nonnegative(),
  /** Whether there may be more than that. */
  totalIsMinimum: z.boolean(),
  /** For the next page; null at the end. */
  next: z.string().nullable(),
});
export type RunList = z.infer<typeof RunList>;

/** One event of some run. `position` grows with every event of the log, whatever its run. */
export const FedRunEvent = z.object({
  run: z.string(),
  seq: z.int().positive(),
  position: z.int().positive(),
  /** Null for one that cannot be read. */
  event: RunEvent.nullable(),
  damage: z.string().nullable(),
});
export type FedRunEvent = z.infer<typeof FedRunEvent>;

/** One event of some sandbox, among those of runs. */
export const FedSandboxEvent = z.object({
  sandbox: z.string(),
  /** Null for one that was there before its owner was put down. */
  owner: z.string().nullable(),
  ...FedRunEvent.omit({ run: true }).shape,
  event: SandboxLogEvent.nullable(),
});
export type FedSandboxEvent = z.infer<typeof FedSandboxEvent>;
/** One event of a workflow, spec, ship or merge, among those of runs. */
export const FedDrivenEvent = z.object({
  driven: DrivenRef,
  /** Null for one whose first event cannot be read, or that was removed meanwhile. */
  owner: z.string().nullable(),
  ...FedRunEvent.omit({ run: true }).shape,
  event: AnyDrivenEvent.nullable(),
});
export type FedDrivenEvent = z.infer<typeof FedDrivenEvent>;
export const FedEvent = z.union([FedRunEvent, FedSandboxEvent, FedDrivenEvent]);
export type FedEvent = z.infer<typeof FedEvent>;

export const SendMessage = z.strictObject({
  text: LongText.min(1),
  mode: MessageMode.default("steer"),
  source: MessageSource.default("user"),
});
export type SendMessage = z.input<typeof SendMessage>;
export const SentMessage = z.object({ message: MessageId });
export type SentMessage = z.infer<typeof SentMessage>;

/** The next turn of a conversation that had come to its end. */
export const ContinueRun = z.strictObject({
  text: LongText.trim().min(1, "there is no message"),
  by: z.string(),
  /** Absent: the one it had. */
  model: z.string().min(1).max(500).optional(),
  /**
   * For what is to come, on top of what was spent. Steps and time that are not given are the agent's own, anew; bounds
   * of cost and tokens that are not given stay as they were, for the whole run.
   */
  budgets: Budgets.default({}),
  /** As of a new run: whether somebody is there to answer. */
  attended: z.boolean().default(false),
  onAsk: OnAsk.optional(),
  onBudget: OnBudget.optional(),
  /** Driven in the background: by the station where one runs, else by a process of its own. */
  detached: z.boolean().default(false),
});
export type ContinueRun = z.infer<typeof ContinueRun>;
export type ContinueRunInput = z.input<typeof ContinueRun>;

export const AnswerQuestion = z.strictObject({
  /** Absent: the oldest one that is open. */
  question: QuestionId.optional(),
  answer: z.enum(["allow", "always", "deny"]),
  text: LongText.optional(),
  /** Of a question about a budget that is allowed: new ones. Those that are not given become half as much again. */
  budgets: Budgets.optional(),
  by: z.string(),
});
export type AnswerQuestion = z.infer<typeof AnswerQuestion>;

/** A part of the log that is not what was written. */
export const LogDamage = z.object({ stream: z.string().nullable(), fromSeq: z.int().nullable(), text: z.string() });
export type LogDamage = z.infer<typeof LogDamage>;
