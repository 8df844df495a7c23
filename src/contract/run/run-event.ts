import { z } from "zod";
import { concerns, defineEvent } from "../event/define-event.ts";
import { eventFamily, type NewEventOf } from "../event/event-family.ts";
import { guardianEvents } from "../guardian/guardian-event.ts";
import { OnAsk, OnBudget } from "../harness/harness.ts";
import { healthEvents } from "../health/health-event.ts";
import { ChosenName, Labels, RunId, SandboxId, SessionId } from "../ids.ts";
import { insideEvents } from "../inside/inside-event.ts";
import { JsonValue } from "../json-value.ts";
import { ChangeLabels } from "../label/change-labels.ts";
import { Usage } from "../model/usage.ts";
import { networkEvents } from "../network/network-event.ts";
import { FinishReason } from "../outcome.ts";
import { Owner } from "../token/owner.ts";
import { AssistantPart, Budgets, CallId, MessageId, MessageMode, MessageSource, QuestionId, TodoList, ToolOutcome } from "./run.ts";
import { Priority, QueuedFor, RunDriver, TapePaths } from "./run-queue.ts";

/**
 * The events of a run log, in the stream `run/<id>`. A fact is true once it is appended; a run's state is a fold of its
 * events. Intents (`…requested`, `…asked`, `…started`) come before the effect, outcomes (`…ended`, `…answered`) after
 * it.
 */

/**
 * Milliseconds that the run had worked by then, as its holder measured them. Absent if the holder did not measure, or
 * another process wrote the event.
 */
const worked = { workedMs: z.number().nonnegative().optional() };

/** Maximum length of a notice; the writer truncates longer ones. */
export const NOTICE_CHARACTERS_MAX = 2000;

/** Maximum length of MCP server and tool names; the producer truncates longer ones. */
export const MCP_NAME_CHARACTERS_MAX = 200;
export const MCP_TOOLS_MAX = 1000;

export const RunCreated = defineEvent("run.created", 1, concerns("state", "facts", "terminal", "console", "recall", "guardian", "spans"), {
  run: RunId,
  parent: z.object({ run: RunId, call: CallId }).nullable(),
  session: SessionId,
  /** The agent when the run began, after defaults and flags. Later changes of the file do not affect the run. */
  agent: z.object({ name: z.string(), digest: z.string(), definition: JsonValue }),
  task: z.string(),
  model: z.string(),
  budgets: Budgets,
  /** The name that the starter chose. */
  name: ChosenName.optional(),
  /** The starter's span, in W3C Trace Context format. */
  traceparent: z.string().max(55).optional(),
  /** The owner; absent: this machine's user. */
  owner: Owner.optional(),
  labels: Labels.optional(),
  /** The intended driver. Absent: the creator. */
  driver: RunDriver.optional(),
});
/** The run waits for a station to drive it when there is room, but not before a certain time. */
export const RunQueued = defineEvent("run.queued", 1, concerns("facts", "terminal", "console", "guardian"), {
  by: z.string(),
  for: QueuedFor,
  priority: Priority,
  startAt: z.iso.datetime().nullable(),
  /** Where the model's output is recorded or replayed. */
  tape: TapePaths.optional(),
});
/** The priority of a waiting run changed. */
export const RunPrioritized = defineEvent("run.prioritized", 1, concerns("facts", "console"), { by: z.string(), priority: Priority });
/** The labels changed, possibly after the run's end; null removes one. */
export const RunLabelled = defineEvent("run.labelled", 1, concerns("facts", "console"), { by: z.string(), changes: ChangeLabels });
/** A notice for the run's starter: files hidden inside, slow steps. */
export const RunNoticed = defineEvent("run.noticed", 1, concerns("console"), { text: z.string().max(NOTICE_CHARACTERS_MAX) });
/** A process became the run's holder. The epoch fences out every earlier holder. */
export const RunClaimed = defineEvent("run.claimed", 1, concerns("facts", "console", "guardian", "spans"), {
  owner: z.string(),
  epoch: z.int().positive(),
  pid: z.int(),
  host: z.string(),
  /** Whether this holder measures the working time with a monotonic clock and writes it into its events. */
  measured: z.boolean().optional(),
  /** The role in which it drives the run. Absent: the process that started or resumed it. */
  driver: RunDriver.optional(),
});
export const RunSandboxed = defineEvent("run.sandboxed", 1, concerns("state", "facts", "terminal", "console", "spans"), {
  sandbox: SandboxId,
  runtime: z.string(),
  why: z.enum(["start", "lost", "resume"]),
  /** After the previous sandbox died: whether this one has its files, or those that the run began with. */
  files: z.enum(["kept", "gone"]).optional(),
  /** The same sandbox was restarted with its files; the processes in it ended. */
  restarted: z.literal(true).optional(),
});
/** Maximum length of the rules in a log; longer ones are not recorded. */
export const RULES_CHARACTERS_MAX = 500_000;

/**
 * The instructions and skills of the workspace that every model call contains from here on. Appended by each driver
 * whose rules differ from those before. Logs of older versions lack it.
 */
export const RulesLoaded = defineEvent("rules.loaded", 1, concerns("state"), { text: z.string().max(RULES_CHARACTERS_MAX) });
export const RunPaused = defineEvent("run.paused", 1, concerns("facts", "terminal", "console", "guardian"), {
  why: z.enum(["permission", "budget", "stuck", "user", "outage"]),
  text: z.string(),
  ...worked,
});
export const RunContinued = defineEvent("run.continued", 1, concerns("facts", "terminal", "console", "guardian"), { by: z.string() });
/** Maximum length of a failure's text; the producer truncates longer ones. */
export const FAILURE_CHARACTERS_MAX = 2000;
/**
 * The process that drives the run could not go on, for example because its disk is full. The run itself did not fail:
 * it stays as it is for its next driver. Also after its end, if its files or sandbox could not be dealt with.
 */
export const RunDriveFailed = defineEvent("run.drive_failed", 1, concerns("terminal", "console"), {
  code: z.string().max(64),
  text: z.string().max(FAILURE_CHARACTERS_MAX),
  /** Whether trying again may help. */
  retryable: z.boolean(),
});
export const RunStopRequested = defineEvent("run.stop_requested", 1, concerns("facts", "terminal", "console"), { by: z.string() });
export const RunEnded = defineEvent("run.ended", 1, concerns("state", "facts", "terminal", "console", "guardian", "spans", "metrics"), {
  reason: FinishReason,
  /** The agent's final message, or the reason for the failure. */
  text: z.string(),
  steps: z.int().nonnegative(),
  usage: Usage,
  costUsd: z.number().nullable(),
  ...worked,
});

/**
 * A finished run continues, either on its own or with the message that follows in the same append. These limits apply
 * to the whole run from now on.
 */
export const RunReopened = defineEvent("run.reopened", 1, concerns("state", "facts", "terminal", "console", "guardian", "spans"), {
  by: z.string(),
  /** Absent: unchanged. */
  model: z.string().optional(),
  budgets: Budgets,
  /** Whether questions are asked from here on. */
  onAsk: OnAsk.optional(),
  onBudget: OnBudget.optional(),
  /** The name that the run has lost to a newer one. */
  lostName: z.string().optional(),
});

/**
 * The first own event of a fork: the events before it are another run's, up to the end of a step. The fork has that
 * run's conversation, and this session with its files. Only its own work counts: the budgets are what was left then.
 */
export const RunForked = defineEvent("run.forked", 1, concerns("state", "facts", "terminal", "console", "guardian", "spans"), {
  run: RunId,
  from: z.object({ run: RunId, step: z.int().nonnegative(), seq: z.int().positive() }),
  by: z.string(),
  session: SessionId,
  agent: z.string(),
  model: z.string(),
  budgets: Budgets,
  name: ChosenName.optional(),
  /** The owner; absent: this machine's user. */
  owner: Owner.optional(),
  labels: Labels.optional(),
  /** Whether questions are asked from here on. Absent: as before. */
  onAsk: OnAsk.optional(),
  onBudget: OnBudget.optional(),
  /** Set if it preserves what a rewind takes back: it then has ended if the run had. */
  isTail: z.literal(true).optional(),
});
/** The intent to rewind the run. Its driver releases it; then its present is preserved, and its files are restored. */
export const RunRewindStarted = defineEvent("run.rewind_started", 1, concerns("facts", "terminal", "console"), {
  by: z.string(),
  toStep: z.int().nonnegative(),
  /** The last event that remains. */
  toSeq: z.int().positive(),
  /** The fork that preserves the present. */
  tail: RunId,
});
/** The run could not be rewound, and stays as it is. */
export const RunRewindFailed = defineEvent("run.rewind_failed", 1, concerns("facts", "terminal", "console"), {
  text: z.string().max(NOTICE_CHARACTERS_MAX),
});
/**
 * The run is again as it was after a step: the events after `toSeq` no longer count, except for the money and time that
 * they took. The fork `tail` preserves them.
 */
export const RunRewound = defineEvent("run.rewound", 1, concerns("state", "facts", "terminal", "console", "guardian", "spans"), {
  by: z.string(),
  toStep: z.int().nonnegative(),
  toSeq: z.int().positive(),
  tail: RunId,
  /** As they were after that step. */
  model: z.string(),
  budgets: Budgets,
});

export const StepStarted = defineEvent("step.started", 1, concerns("state", "facts", "terminal", "console", "guardian", "spans"), {
  step: z.int().positive(),
  ...worked,
});

/**
 * A step is over: its tools have ended, and the next model call may already have begun. `point` is the session's files
 * after it, with everything outside the workspace; null if they were not stored.
 */
export const StepEnded = defineEvent("step.ended", 1, concerns("state", "console"), {
  step: z.int().positive(),
  point: z.string().max(64).nullable(),
  /** Whether files changed since the last point, how many, and the bytes that storing them took. */
  hasChanged: z.boolean(),
  files: z.int().nonnegative(),
  bytes: z.int().nonnegative(),
  /** What the step cost. Null if a price is unknown. */
  costUsd: z.number().nullable(),
  /** Why the files were not stored. */
  problem: z.string().max(2000).optional(),
});

export const ModelRequested = defineEvent("model.requested", 1, concerns("state", "terminal", "console", "spans", "metrics"), {
  call: CallId,
  step: z.int().positive(),
  attempt: z.int().positive(),
  model: z.string(),
  /** Digest of the whole request: the key for record and replay. */
  digest: z.string(),
  /** Injected messages that this call is the first to include; this acknowledges them. */
  messages: z.array(MessageId),
  contextTokens: z.int().nonnegative(),
  ...worked,
});
/** Streamed output, in pieces of a few hundred milliseconds. Only for viewing, not for the fold. */
export const ModelStreamed = defineEvent("model.streamed", 1, concerns("terminal", "console"), {
  call: CallId,
  kind: z.enum(["text", "thought"]),
  text: z.string(),
});
export const ModelEnded = defineEvent(
  "model.ended",
  1,
  concerns("state", "facts", "terminal", "console", "recall", "guardian", "spans", "metrics"),
  {
    call: CallId,
    parts: z.array(AssistantPart),
    usage: Usage,
    costUsd: z.number().nullable(),
    stop: z.enum(["end", "tools", "length", "filtered", "interrupted"]),
    durationMs: z.number(),
    ...worked,
  },
);
export const ModelFailed = defineEvent("model.failed", 1, concerns("state", "terminal", "console", "spans", "metrics"), {
  call: CallId,
  error: z.object({ code: z.string(), message: z.string() }),
  retryInMs: z.number().nullable(),
  ...worked,
});

export const ToolRequested = defineEvent("tool.requested", 1, concerns("state", "terminal", "console", "recall", "guardian", "spans"), {
  call: CallId,
  step: z.int().positive(),
  name: z.string(),
  arguments: JsonValue,
});
/** Appended after permission and hooks but before the effect: from here on the call may have taken effect. */
export const ToolStarted = defineEvent("tool.started", 1, concerns("state", "terminal", "console", "spans"), { call: CallId, ...worked });
/** Output of a running tool, in pieces. Only for viewing, not for the fold. */
export const ToolStreamed = defineEvent("tool.streamed", 1, concerns("terminal", "console"), { call: CallId, text: z.string() });
export const ToolEnded = defineEvent(
  "tool.ended",
  1,
  concerns("state", "facts", "terminal", "console", "recall", "guardian", "spans", "metrics"),
  {
    call: CallId,
    outcome: ToolOutcome,
    /** The text for the model, already truncated to the tool's limit. */
    text: z.string(),
    /** Facts for users and programs: exit code, path of the full output, lines added and removed. */
    details: JsonValue.optional(),
    durationMs: z.number(),
    ...worked,
  },
);
export const FileChanged = defineEvent("file.changed", 1, concerns("state", "terminal", "console", "guardian"), {
  call: CallId,
  path: z.string(),
  kind: z.enum(["added", "modified", "removed"]),
  linesAdded: z.int().nullable(),
  linesRemoved: z.int().nullable(),
});

export const MessageReceived = defineEvent("message.received", 1, concerns("state", "terminal", "console", "recall", "guardian"), {
  message: MessageId,
  source: MessageSource,
  mode: MessageMode,
  text: z.string(),
});
export const PermissionAsked = defineEvent("permission.asked", 1, concerns("state", "facts", "terminal", "console"), {
  question: QuestionId,
  call: CallId.nullable(),
  kind: z.enum(["tool", "budget", "stuck"]),
  text: z.string(),
  /** What the answer `always` would allow for the rest of this run. */
  pattern: z.string().nullable(),
});
export const PermissionAnswered = defineEvent("permission.answered", 1, concerns("state", "facts", "terminal", "console", "guardian"), {
  question: QuestionId,
  answer: z.enum(["allow", "always", "deny"]),
  by: z.string(),
  text: z.string().optional(),
  /** For a budget question: the new limits. */
  budgets: Budgets.optional(),
});
export const ContextCompacted = defineEvent("context.compacted", 1, concerns("state", "facts", "terminal", "console"), {
  /** The summary replaces everything before this step; the log still has it. */
  beforeStep: z.int().positive(),
  summary: z.string(),
  tokensBefore: z.int(),
  tokensAfter: z.int(),
  how: z.enum(["model", "cut"]),
  /** The cost of creating the summary. */
  usage: Usage.optional(),
  costUsd: z.number().nullable().optional(),
});
export const LoopNoticed = defineEvent("loop.noticed", 1, concerns("state", "terminal", "console"), {
  pattern: z.enum(["same", "alternating", "no_progress"]),
  action: z.enum(["nudged", "summarised", "paused", "failed"]),
  text: z.string(),
});
/** An MCP server of the agent is ready in the sandbox and provides these tools. */
export const McpConnected = defineEvent("mcp.connected", 1, concerns("terminal", "console"), {
  server: z.string().max(MCP_NAME_CHARACTERS_MAX),
  tools: z.array(z.string().max(MCP_NAME_CHARACTERS_MAX)).max(MCP_TOOLS_MAX),
  durationMs: z.number().nonnegative(),
});
/** Maximum length of a commit's subject and of a branch's name; the producer truncates longer ones. */
export const COMMIT_SUBJECT_CHARACTERS_MAX = 200;
/** A command created a commit in the workspace's repository. Text and shas are what the repository inside says. */
export const GitCommitted = defineEvent("git.committed", 1, concerns("terminal", "console"), {
  sha: z.string().regex(/^[0-9a-f]{40,64}$/),
  subject: z.string().max(COMMIT_SUBJECT_CHARACTERS_MAX),
  /** Null: HEAD was on no branch. */
  branch: z.string().max(COMMIT_SUBJECT_CHARACTERS_MAX).nullable(),
  /** More than one: it is a merge. None: it is the first. */
  parents: z.int().nonnegative(),
});
export const TodoChanged = defineEvent("todo.changed", 1, concerns("state", "console", "guardian"), { call: CallId, todo: TodoList });

const all = [
  RunCreated,
  RunQueued,
  RunPrioritized,
  RunLabelled,
  RunNoticed,
  RunClaimed,
  RunSandboxed,
  RulesLoaded,
  RunPaused,
  RunContinued,
  RunDriveFailed,
  RunStopRequested,
  RunEnded,
  RunReopened,
  RunForked,
  RunRewindStarted,
  RunRewindFailed,
  RunRewound,
  StepStarted,
  StepEnded,
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
  McpConnected,
  GitCommitted,
  TodoChanged,
  ...networkEvents.definitions,
  ...healthEvents.definitions,
  ...insideEvents.definitions,
  ...guardianEvents.definitions,
] as const;
export const RunEvent = z.discriminatedUnion("type", all);
export const runEvents = eventFamily(all);
/** The event types in which a run's holder records the working time. */
export const measuredTypes: ReadonlySet<string> = new Set(
  all.filter(({ shape }) => "workedMs" in shape.data.shape).map(({ shape }) => shape.type.value),
);
export type RunEvent = z.infer<typeof RunEvent>;
/** An event that is not yet in the log. */
export type NewRunEvent = NewEventOf<RunEvent>;
