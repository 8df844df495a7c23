import { z } from "zod";
import { AgentDefinition } from "./agent.ts";
import { withChanges } from "./change-labels.ts";
import { emptyGuardianFacts, foldGuardian, GuardianFacts } from "./guardian.ts";
import { emptyHealthFacts, foldHealth, HealthFacts, isWell } from "./health.ts";
import { Labels, SandboxId } from "./ids.ts";
import { LOCAL_OWNER } from "./owner.ts";
import { Budgets, CallId, FinishReason, QuestionId } from "./run.ts";
import { advanceClock } from "./run-clock.ts";
import type { RunEvent } from "./run-event.ts";
import { Priority, QueuedFor, RunDriver, TapePaths } from "./run-queue.ts";
import { addUsage, Usage } from "./usage.ts";

/**
 * Raised with every change of what is in the facts or how they are folded: those of an older version are folded anew.
 */
export const RUN_FACTS_VERSION = 8;

const TITLE_CHARACTERS_MAX = 1000;

/**
 * What everybody wants to know of a run without reading its log: the log keeps them with each append, as the run's
 * head. The run's whole state has them, too, by the same fold.
 */
export const RunFacts = z.object({
  run: z.string(),
  /** Chosen by whoever started it. */
  name: z.string().nullable(),
  /** Whose it is. */
  owner: z.string(),
  labels: Labels,
  session: z.string(),
  parent: z.object({ run: z.string(), call: z.string() }).nullable(),
  agent: z.string(),
  model: z.string(),
  /** The task, or its first thousand characters. */
  title: z.string(),
  budgets: Budgets,
  /** What holds where the budgets say nothing. */
  bounds: z.object({ steps: z.int(), timeMs: z.int() }),
  status: z.enum(["created", "running", "paused", "ended"]),
  paused: z.object({ why: z.string(), text: z.string() }).nullable(),
  finish: FinishReason.nullable(),
  /** Who drives it, or did last, or is to. */
  driver: RunDriver,
  priority: Priority,
  /** Set while it waits for a station to drive it. */
  queued: z.object({ for: QueuedFor, since: z.string(), startAt: z.string().nullable(), tape: TapePaths.nullable() }).nullable(),
  /** The memory that its sandbox asks for; null: nobody said. */
  memoryBytes: z.int().nullable(),
  stopRequested: z.string().nullable(),
  sandbox: z.object({ id: SandboxId, runtime: z.string() }).nullable(),
  /** Steps begun. */
  step: z.int().nonnegative(),
  usage: Usage,
  /** Null once the price of something is not known. */
  costUsd: z.number().nullable(),
  /** Questions that nobody has answered. */
  asked: z.array(z.object({ question: QuestionId, call: CallId.nullable(), kind: z.enum(["tool", "budget", "stuck"]), text: z.string() })),
  /** Milliseconds the run really worked: neither paused nor without an owner. */
  workedMs: z.number().nonnegative(),
  clock: z.object({
    lastAtMs: z.number(),
    /** Whether time counts now. */
    counting: z.boolean(),
    /**
     * Whether the owner measures it and says so in its events. Owners of old did not: then it is the time between their
     * events.
     */
    measured: z.boolean(),
  }),
  /** Of what drives it, and of its sandboxes one after the other. */
  health: z.object({ driver: HealthFacts, sandbox: HealthFacts }),
  /** What the guardian did about it. */
  guardian: GuardianFacts,
  createdAt: z.string(),
});
export type RunFacts = z.infer<typeof RunFacts>;

export function emptyRunFacts(): RunFacts {
  return {
    run: "",
    name: null,
    owner: LOCAL_OWNER,
    labels: {},
    session: "",
    parent: null,
    agent: "",
    model: "",
    title: "",
    budgets: {},
    bounds: { steps: 0, timeMs: 0 },
    status: "created",
    paused: null,
    finish: null,
    driver: "caller",
    priority: 0,
    queued: null,
    memoryBytes: null,
    stopRequested: null,
    sandbox: null,
    step: 0,
    usage: { inputTokens: 0, outputTokens: 0, cachedInputTokens: 0, reasoningTokens: 0 },
    costUsd: 0,
    asked: [],
    workedMs: 0,
    clock: { lastAtMs: 0, counting: false, measured: false },
    health: { driver: emptyHealthFacts(), sandbox: emptyHealthFacts() },
    guardian: emptyGuardianFacts(),
    createdAt: "",
  };
}

/** Paused until somebody resumes it, and not for an answer. */
export function waitsForResume({ paused }: Pick<RunFacts, "paused">): boolean {
  return paused?.why === "user" || paused?.why === "outage";
}

/** Adds one event to the facts, in place. */
export function applyToFacts(facts: RunFacts, event: RunEvent): void {
  advanceClock(facts, event);
  switch (event.type) {
    case "run.created":
      applyCreated(facts, event);
      return;
    case "run.queued":
      applyQueued(facts, event);
      return;
    case "run.prioritized":
      facts.priority = event.data.priority;
      return;
    case "run.labelled":
      facts.labels = withChanges(facts.labels, event.data.changes);
      return;
    case "run.claimed":
      applyClaimed(facts, event.data);
      return;
    case "run.sandboxed":
      facts.sandbox = { id: event.data.sandbox, runtime: event.data.runtime };
      isWell(facts.health.sandbox);
      return;
    case "run.paused":
      facts.status = "paused";
      facts.paused = { why: event.data.why, text: event.data.text };
      return;
    case "run.continued":
      facts.status = "running";
      facts.paused = null;
      return;
    case "run.stop_requested":
      facts.stopRequested ??= event.data.by;
      return;
    case "run.ended":
      applyEnded(facts, event.data);
      return;
    case "run.reopened":
      applyReopened(facts, event.data);
      return;
    case "step.started":
      facts.step = event.data.step;
      return;
    case "permission.asked":
      applyAsked(facts, event.data);
      return;
    case "permission.answered":
      applyAnswered(facts, event.data);
      return;
    case "model.ended":
    case "gateway.called":
      spend(facts, event.data);
      return;
    case "context.compacted":
      if (event.data.usage) spend(facts, { usage: event.data.usage, costUsd: event.data.costUsd === undefined ? 0 : event.data.costUsd });
      return;
    case "tool.ended":
      applyToolEnded(facts, event.data);
      return;
    case "health.changed":
    case "health.restart_started":
    case "health.restart_ended":
    case "health.escalated":
      foldHealth(facts.health[event.data.subject.kind], event);
      return;
    case "guardian.decided":
    case "guardian.settled":
    case "guardian.judged":
      foldGuardian(facts.guardian, event);
      return;
    case "sandbox.reported":
    case "artifact.stored":
    case "model.requested":
    case "model.streamed":
    case "model.failed":
    case "tool.requested":
    case "tool.started":
    case "tool.streamed":
    case "file.changed":
    case "message.received":
    case "loop.noticed":
    case "run.noticed":
    case "todo.changed":
    case "network.denied":
    case "network.failed":
    case "network.closed":
    case "network.changed":
    case "secret.used":
    case "secret.withheld":
    case "secret.revoked":
    case "port.opened":
    case "port.closed":
      // They say nothing about the facts.
      return;
    default:
      // A new event does not compile until it is named above.
      event satisfies never;
  }
}

function applyCreated(facts: RunFacts, { at, data }: Extract<RunEvent, { type: "run.created" }>): void {
  const { harness, sandbox } = AgentDefinition.parse(data.agent.definition);
  facts.run = data.run;
  facts.name = data.name ?? null;
  facts.owner = data.owner ?? LOCAL_OWNER;
  facts.labels = data.labels ?? {};
  facts.session = data.session;
  facts.parent = data.parent;
  facts.agent = data.agent.name;
  facts.model = data.model;
  facts.title = data.task.slice(0, TITLE_CHARACTERS_MAX);
  facts.budgets = data.budgets;
  facts.bounds = { steps: harness.maxSteps, timeMs: harness.timeoutMs };
  facts.memoryBytes = sandbox.limits.memoryBytes ?? null;
  facts.driver = data.driver ?? "caller";
  facts.createdAt = at;
}

function applyClaimed(facts: RunFacts, { driver = "caller" }: Extract<RunEvent, { type: "run.claimed" }>["data"]): void {
  if (facts.status === "created") facts.status = "running";
  isWell(facts.health.driver);
  facts.driver = driver;
  facts.queued = null;
}

function applyEnded(facts: RunFacts, { reason }: Extract<RunEvent, { type: "run.ended" }>["data"]): void {
  facts.status = "ended";
  facts.finish = reason;
  isWell(facts.health.driver);
  isWell(facts.health.sandbox);
  facts.queued = null;
}

/** One that goes on after its driver died has waited since it was made: it has been served before. */
function applyQueued(facts: RunFacts, { at, data }: Extract<RunEvent, { type: "run.queued" }>): void {
  const since = facts.queued?.since ?? (data.for === "adoption" ? facts.createdAt : at);
  facts.driver = "station";
  facts.priority = data.priority;
  facts.queued = { for: data.for, since, startAt: data.startAt, tape: data.tape ?? null };
}

/** What was asked, and of whom it was asked to stop, ended with the run; so did its sandbox. */
function applyReopened(facts: RunFacts, data: Extract<RunEvent, { type: "run.reopened" }>["data"]): void {
  facts.status = "running";
  facts.finish = null;
  facts.paused = null;
  facts.stopRequested = null;
  facts.sandbox = null;
  facts.asked = [];
  facts.model = data.model ?? facts.model;
  if (data.lostName !== undefined) facts.name = null;
  facts.budgets = { ...facts.budgets, ...data.budgets };
}

function applyAsked(facts: RunFacts, { question, call, kind, text }: Extract<RunEvent, { type: "permission.asked" }>["data"]): void {
  facts.asked.push({ question, call, kind, text });
}

/** A sub-agent's call says what the sub-run spent. */
function applyToolEnded(facts: RunFacts, { details }: Extract<RunEvent, { type: "tool.ended" }>["data"]): void {
  const spent = details as { usage?: Usage; costUsd?: number | null } | null | undefined;
  if (spent?.usage) spend(facts, { usage: spent.usage, costUsd: spent.costUsd ?? null });
}

/** The first answer counts. */
function applyAnswered(facts: RunFacts, data: Extract<RunEvent, { type: "permission.answered" }>["data"]): void {
  const at = facts.asked.findIndex((each) => each.question === data.question);
  const [question] = at === -1 ? [] : facts.asked.splice(at, 1);
  if (question?.kind === "budget" && data.answer !== "deny" && data.budgets) facts.budgets = { ...facts.budgets, ...data.budgets };
}

function spend(facts: RunFacts, spent: { usage: Usage; costUsd: number | null }): void {
  facts.usage = addUsage(facts.usage, spent.usage);
  facts.costUsd = facts.costUsd === null || spent.costUsd === null ? null : facts.costUsd + spent.costUsd;
}
