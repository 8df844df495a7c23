import { z } from "zod";
import { ChangeLabels } from "./change-labels.ts";
import { defineEvent } from "./define-event.ts";
import { eventFamily, type NewEventOf } from "./event-family.ts";
import { guardianEvents } from "./guardian-event.ts";
import { healthEvents } from "./health-event.ts";
import { ChosenName, Labels, SandboxId } from "./ids.ts";
import { insideEvents } from "./inside-event.ts";
import { JsonValue } from "./json-value.ts";
import { networkEvents } from "./network-event.ts";
import { Owner } from "./owner.ts";
import {
  AssistantPart,
  Budgets,
  CallId,
  FinishReason,
  MessageId,
  MessageMode,
  MessageSource,
  OnAsk,
  OnBudget,
  QuestionId,
  RunId,
  SessionId,
  TodoList,
  ToolOutcome,
} from "./run.ts";
import { Priority, QueuedFor, RunDriver, TapePaths } from "./run-queue.ts";
import { Usage } from "./usage.ts";

/**
 * The events of a run's log, in the stream `run/<id>`. A fact is true once it is appended; a run's state is a fold of
 * these. Intents (`…requested`, `…asked`, `…started`) come before the effect, outcomes (`…ended`, `…answered`) after
 * it.
 */

/**
 * Milliseconds the run had worked by then, as its owner measured them. Absent in events of owners that did not measure,
 * and of others.
 */
const worked = { workedMs: z.number().nonnegative().optional() };

/** Of what is told; whoever tells cuts it. */
export const NOTICE_CHARACTERS_MAX = 2000;

export const RunCreated = defineEvent("run.created", 1, {
  run: RunId,
  parent: z.object({ run: RunId, call: CallId }).nullable(),
  session: SessionId,
  /**
   * The agent as it was when the run began, after defaults and flags; a later change of the file does not change the
   * run.
   */
  agent: z.object({ name: z.string(), digest: z.string(), definition: JsonValue }),
  task: z.string(),
  model: z.string(),
  budgets: Budgets,
  /** Chosen by whoever started it. */
  name: ChosenName.optional(),
  /** Of whoever started it, as W3C's Trace Context has it. */
  traceparent: z.string().max(55).optional(),
  /** Whose it is; absent: the user's of this machine. */
  owner: Owner.optional(),
  labels: Labels.optional(),
  /** Who is to drive it. Absent: whoever made it. */
  driver: RunDriver.optional(),
});
/** A station is to drive the run when there is room for it, and not before a time. Until then it waits. */
export const RunQueued = defineEvent("run.queued", 1, {
  by: z.string(),
  for: QueuedFor,
  priority: Priority,
  startAt: z.iso.datetime().nullable(),
  /** Where its model's words come from, or go to. */
  tape: TapePaths.optional(),
});
/** Of a run that waits: it is to be driven sooner, or later. */
export const RunPrioritized = defineEvent("run.prioritized", 1, { by: z.string(), priority: Priority });
/** Its labels were changed, by whomever, also after its end; null takes one away. */
export const RunLabelled = defineEvent("run.labelled", 1, { by: z.string(), changes: ChangeLabels });
/** Worth a word to whoever started the run: files that are hidden inside, what takes long. */
export const RunNoticed = defineEvent("run.noticed", 1, { text: z.string().max(NOTICE_CHARACTERS_MAX) });
/** A process became the run's owner. The epoch fences every earlier owner out. */
export const RunClaimed = defineEvent("run.claimed", 1, {
  owner: z.string(),
  epoch: z.int().positive(),
  pid: z.int(),
  host: z.string(),
  /** Whether this owner measures the time it works by a clock that nobody sets, and writes it into its events. */
  measured: z.boolean().optional(),
  /** As what it drives the run. Absent: as whoever started or resumed it. */
  driver: RunDriver.optional(),
});
export const RunSandboxed = defineEvent("run.sandboxed", 1, {
  sandbox: SandboxId,
  runtime: z.string(),
  why: z.enum(["start", "lost", "resume"]),
  /** After the death of the one before: whether its files are in this one, or those that the run began with. */
  files: z.enum(["kept", "gone"]).optional(),
  /** The same sandbox as before, started again on its files: what ran in it has ended. */
  restarted: z.literal(true).optional(),
});
export const RunPaused = defineEvent("run.paused", 1, {
  why: z.enum(["permission", "budget", "stuck", "user", "outage"]),
  text: z.string(),
  ...worked,
});
export const RunContinued = defineEvent("run.continued", 1, { by: z.string() });
export const RunStopRequested = defineEvent("run.stop_requested", 1, { by: z.string() });
export const RunEnded = defineEvent("run.ended", 1, {
  reason: FinishReason,
  /** The agent's last words, or what went wrong. */
  text: z.string(),
  steps: z.int().nonnegative(),
  usage: Usage,
  costUsd: z.number().nullable(),
  ...worked,
});

/**
 * A run that had ended goes on: by itself, or with the message that follows in the same append. Of its bounds, those
 * that are given hold from here on, for the whole run.
 */
export const RunReopened = defineEvent("run.reopened", 1, {
  by: z.string(),
  /** Absent: the one it had. */
  model: z.string().optional(),
  budgets: Budgets,
  /** Whether somebody is there to be asked, from here on. */
  onAsk: OnAsk.optional(),
  onBudget: OnBudget.optional(),
  /** The name it had until now: something newer has it. */
  lostName: z.string().optional(),
});

export const StepStarted = defineEvent("step.started", 1, { step: z.int().positive(), ...worked });

export const ModelRequested = defineEvent("model.requested", 1, {
  call: CallId,
  step: z.int().positive(),
  attempt: z.int().positive(),
  model: z.string(),
  /** Of everything sent: the key of record and replay. */
  digest: z.string(),
  /** Injected messages this call is the first to see: their receipt. */
  messages: z.array(MessageId),
  contextTokens: z.int().nonnegative(),
  ...worked,
});
/** What was streamed, in pieces of some hundred milliseconds; for watching, not for the fold. */
export const ModelStreamed = defineEvent("model.streamed", 1, { call: CallId, kind: z.enum(["text", "thought"]), text: z.string() });
export const ModelEnded = defineEvent("model.ended", 1, {
  call: CallId,
  parts: z.array(AssistantPart),
  usage: Usage,
  costUsd: z.number().nullable(),
  stop: z.enum(["end", "tools", "length", "filtered", "interrupted"]),
  durationMs: z.number(),
  ...worked,
});
export const ModelFailed = defineEvent("model.failed", 1, {
  call: CallId,
  error: z.object({ code: z.string(), message: z.string() }),
  retryInMs: z.number().nullable(),
  ...worked,
});

export const ToolRequested = defineEvent("tool.requested", 1, {
  call: CallId,
  step: z.int().positive(),
  name: z.string(),
  arguments: JsonValue,
});
/** Appended before the effect and after permission and hooks: from here on the call may have happened. */
export const ToolStarted = defineEvent("tool.started", 1, { call: CallId, ...worked });
/** Output of a running tool, in pieces; for watching, not for the fold. */
export const ToolStreamed = defineEvent("tool.streamed", 1, { call: CallId, text: z.string() });
export const ToolEnded = defineEvent("tool.ended", 1, {
  call: CallId,
  outcome: ToolOutcome,
  /** What the model is told, already within the tool's limit. */
  text: z.string(),
  /** Facts for people and programs: exit code, path of the full output, lines added and removed. */
  details: JsonValue.optional(),
  durationMs: z.number(),
  ...worked,
});
export const FileChanged = defineEvent("file.changed", 1, {
  call: CallId,
  path: z.string(),
  kind: z.enum(["added", "modified", "removed"]),
  linesAdded: z.int().nullable(),
  linesRemoved: z.int().nullable(),
});

export const MessageReceived = defineEvent("message.received", 1, {
  message: MessageId,
  source: MessageSource,
  mode: MessageMode,
  text: z.string(),
});
export const PermissionAsked = defineEvent("permission.asked", 1, {
  question: QuestionId,
  call: CallId.nullable(),
  kind: z.enum(["tool", "budget", "stuck"]),
  text: z.string(),
  /** What an answer `always` would remember for this run. */
  pattern: z.string().nullable(),
});
export const PermissionAnswered = defineEvent("permission.answered", 1, {
  question: QuestionId,
  answer: z.enum(["allow", "always", "deny"]),
  by: z.string(),
  text: z.string().optional(),
  /** For a budget question: the new bounds. */
  budgets: Budgets.optional(),
});
export const ContextCompacted = defineEvent("context.compacted", 1, {
  /** Everything before this step is replaced by the summary; the log keeps it. */
  beforeStep: z.int().positive(),
  summary: z.string(),
  tokensBefore: z.int(),
  tokensAfter: z.int(),
  how: z.enum(["model", "cut"]),
  /** What the summary itself cost. */
  usage: Usage.optional(),
  costUsd: z.number().nullable().optional(),
});
export const LoopNoticed = defineEvent("loop.noticed", 1, {
  pattern: z.enum(["same", "alternating", "no_progress"]),
  action: z.enum(["nudged", "summarised", "paused", "failed"]),
  text: z.string(),
});
export const TodoChanged = defineEvent("todo.changed", 1, { call: CallId, todo: TodoList });

const all = [
  RunCreated,
  RunQueued,
  RunPrioritized,
  RunLabelled,
  RunNoticed,
  RunClaimed,
  RunSandboxed,
  RunPaused,
  RunContinued,
  RunStopRequested,
  RunEnded,
  RunReopened,
  StepStarted,
  ModelRequested,
  ModelStreamed,
  ModelEnded,
  ModelFailed,
  ToolRequested,
  ToolStarted,
  ToolStreamed,
  ToolEnded,
  FileChanged,
  MessageReceived,
  PermissionAsked,
  PermissionAnswered,
  ContextCompacted,
  LoopNoticed,
  TodoChanged,
  ...networkEvents.definitions,
  ...healthEvents.definitions,
  ...insideEvents.definitions,
  ...guardianEvents.definitions,
] as const;
export const RunEvent = z.discriminatedUnion("type", all);
export const runEvents = eventFamily(all);
/** Types of events into which a run's owner writes how long the run has worked. */
export const measuredTypes: ReadonlySet<string> = new Set(
  all.filter(({ shape }) => "workedMs" in shape.data.shape).map(({ shape }) => shape.type.value),
);
export type RunEvent = z.infer<typeof RunEvent>;
/** An event before it has a place in the log. */
export type NewRunEvent = NewEventOf<RunEvent>;
