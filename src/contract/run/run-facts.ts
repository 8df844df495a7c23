import { z } from "zod";
import { AgentDefinition } from "../agent/agent.ts";
import type { EventFor } from "../event/event-family.ts";
import { type Handlers, handle } from "../event/handlers.ts";
import { emptyGuardianFacts, foldGuardian, GuardianFacts } from "../guardian/guardian.ts";
import type { GuardianEvent } from "../guardian/guardian-event.ts";
import { emptyHealthFacts, foldHealth, HealthFacts, resetHealth } from "../health/health.ts";
import type { HealthEvent } from "../health/health-event.ts";
import { Labels, SandboxId } from "../ids.ts";
import { withChanges } from "../label/change-labels.ts";
import { addUsage, Usage } from "../model/usage.ts";
import { FinishReason } from "../outcome.ts";
import { LOCAL_OWNER } from "../token/owner.ts";
import { Budgets, CallId, QuestionId } from "./run.ts";
import { advanceClock } from "./run-clock.ts";
import type { RunEvent, runEvents } from "./run-event.ts";
import { Priority, QueuedFor, RunDriver, TapePaths } from "./run-queue.ts";

/** Increase with every change of the facts or their fold: facts of an older version are rebuilt. */
export const RUN_FACTS_VERSION = 10;

const TITLE_CHARACTERS_MAX = 1000;

/**
 * Common facts about a run that need no reading of its log: they are the head of its stream, updated with each append.
 * The full state of a run includes them, with the same fold.
 */
export const RunFacts = z.object({
  run: z.string(),
  /** The name that the starter chose. */
  name: z.string().nullable(),
  /** The run's owner. */
  owner: z.string(),
  labels: Labels,
  session: z.string(),
  parent: z.object({ run: z.string(), call: z.string() }).nullable(),
  /**
   * The run whose conversation it continues, the number of steps, and the last event that they share. `isTail`: it
   * preserves what a rewind of that run took back.
   */
  forked: z.object({ run: z.string(), step: z.int(), seq: z.int(), isTail: z.boolean() }).nullable(),
  /** Set while the run is being rewound. */
  rewinding: z.object({ by: z.string(), toStep: z.int(), toSeq: z.int(), tail: z.string() }).nullable(),
  /** How often the run, or the part that it inherits, was rewound. */
  rewinds: z.int().nonnegative(),
  agent: z.string(),
  model: z.string(),
  /** The task, or its first thousand characters. */
  title: z.string(),
  budgets: Budgets,
  /** Limits for steps and time if the budgets have none. */
  bounds: z.object({ steps: z.int(), timeMs: z.int() }),
  status: z.enum(["created", "running", "paused", "ended"]),
  paused: z.object({ why: z.string(), text: z.string() }).nullable(),
  finish: FinishReason.nullable(),
  /** The current, previous or intended driver. */
  driver: RunDriver,
  priority: Priority,
  /** Set while the run waits for a station to drive it. */
  queued: z.object({ for: QueuedFor, since: z.string(), startAt: z.string().nullable(), tape: TapePaths.nullable() }).nullable(),
  /** The memory that its sandbox requests; null if it requests none. */
  memoryBytes: z.int().nullable(),
  stopRequested: z.string().nullable(),
  sandbox: z.object({ id: SandboxId, runtime: z.string() }).nullable(),
  /** Number of steps begun. */
  step: z.int().nonnegative(),
  usage: Usage,
  /** Null if any price is unknown. */
  costUsd: z.number().nullable(),
  /** Unanswered questions. */
  asked: z.array(z.object({ question: QuestionId, call: CallId.nullable(), kind: z.enum(["tool", "budget", "stuck"]), text: z.string() })),
  /** Milliseconds of actual work: neither paused nor without a holder. */
  workedMs: z.number().nonnegative(),
  clock: z.object({
    lastAtMs: z.number(),
    /** Whether time currently counts. */
    counting: z.boolean(),
    /**
     * Whether the holder measures time and records it in its events. Older holders did not; then the time between their
     * events counts.
     */
    measured: z.boolean(),
  }),
  /** Health of its driver, and of its current sandbox. */
  health: z.object({ driver: HealthFacts, sandbox: HealthFacts }),
  /** What the guardian did to the run. */
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
    forked: null,
    rewinding: null,
    rewinds: 0,
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

/** Returns whether the run is paused until someone resumes it, rather than waiting for an answer. */
export function waitsForResume({ paused }: Pick<RunFacts, "paused">): boolean {
  return paused?.why === "user" || paused?.why === "outage" || isAtFork({ paused });
}

/** Returns whether the run is a new fork, or was rewound, and has not continued since. */
export function isAtFork({ paused }: Pick<RunFacts, "paused">): boolean {
  return paused?.why === "forked" || paused?.why === "rewound";
}

/** Applies one event to the facts, in place. */
export function applyToFacts(facts: RunFacts, event: RunEvent): void {
  advanceClock(facts, event);
  handle(handlers, event, facts);
}

const handlers: Handlers<EventFor<typeof runEvents, "facts">, RunFacts> = {
  "run.created": applyCreated,
  "run.queued": applyQueued,
  "run.prioritized": ({ data }, facts) => {
    facts.priority = data.priority;
  },
  "run.labelled": ({ data }, facts) => {
    facts.labels = withChanges(facts.labels, data.changes);
  },
  "run.claimed": applyClaimed,
  "run.sandboxed": ({ data }, facts) => {
    facts.sandbox = { id: data.sandbox, runtime: data.runtime };
    resetHealth(facts.health.sandbox);
  },
  "run.paused": ({ data: { why, text } }, facts) => {
    facts.status = "paused";
    facts.paused = { why, text };
  },
  "run.continued": (_, facts) => {
    facts.status = "running";
    facts.paused = null;
  },
  "run.stop_requested": ({ data }, facts) => {
    facts.stopRequested ??= data.by;
  },
  "run.ended": applyEnded,
  "run.reopened": applyReopened,
  "run.forked": applyForked,
  "run.rewind_started": ({ data }, facts) => {
    facts.rewinding = data;
  },
  "run.rewind_failed": (_, facts) => {
    facts.rewinding = null;
  },
  "run.rewound": applyRewound,
  "step.started": ({ data }, facts) => {
    facts.step = data.step;
  },
  "permission.asked": ({ data: { question, call, kind, text } }, facts) => {
    facts.asked.push({ question, call, kind, text });
  },
  "permission.answered": applyAnswered,
  "model.ended": spend,
  "gateway.called": spend,
  "context.compacted": ({ data: { usage, costUsd = 0 } }, facts) => {
    if (usage) spend({ data: { usage, costUsd } }, facts);
  },
  "tool.ended": applyToolEnded,
  "health.changed": applyHealth,
  "health.restart_started": applyHealth,
  "health.restart_ended": applyHealth,
  "health.escalated": applyHealth,
  "guardian.decided": applyGuardian,
  "guardian.settled": applyGuardian,
  "guardian.judged": applyGuardian,
};

type EventOf<Type extends RunEvent["type"]> = Extract<RunEvent, { type: Type }>;

function applyCreated({ at, data }: EventOf<"run.created">, facts: RunFacts): void {
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

function applyClaimed({ data: { driver = "caller" } }: EventOf<"run.claimed">, facts: RunFacts): void {
  if (facts.status === "created") facts.status = "running";
  resetHealth(facts.health.driver);
  facts.driver = driver;
  facts.queued = null;
}

function applyEnded({ data: { reason } }: EventOf<"run.ended">, facts: RunFacts): void {
  facts.status = "ended";
  facts.finish = reason;
  resetHealth(facts.health.driver);
  resetHealth(facts.health.sandbox);
  facts.queued = null;
}

/** A run that is adopted after its driver died counts as waiting since its creation: it had its turn before. */
function applyQueued({ at, data }: EventOf<"run.queued">, facts: RunFacts): void {
  const since = facts.queued?.since ?? (data.for === "adoption" ? facts.createdAt : at);
  facts.driver = "station";
  facts.priority = data.priority;
  facts.queued = { for: data.for, since, startAt: data.startAt, tape: data.tape ?? null };
}

/** Open questions, the stop request and the sandbox ended with the run. */
function applyReopened({ data }: EventOf<"run.reopened">, facts: RunFacts): void {
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

/** The fork's own facts replace those of the run that it began with, whose spending and end are not its own. */
function applyForked({ at, data }: EventOf<"run.forked">, facts: RunFacts): void {
  const { agent, title, bounds, memoryBytes, step, rewinds, status, finish } = facts;
  Object.assign(facts, emptyRunFacts(), { agent, title, bounds, memoryBytes, step, rewinds });
  facts.run = data.run;
  facts.session = data.session;
  facts.model = data.model;
  facts.name = data.name ?? null;
  facts.owner = data.owner ?? LOCAL_OWNER;
  facts.labels = data.labels ?? {};
  facts.forked = { ...data.from, isTail: data.isTail === true };
  facts.budgets = data.budgets;
  facts.createdAt = at;
  facts.clock.lastAtMs = Date.parse(at);
  if (data.isTail && status === "ended") Object.assign(facts, { status, finish });
  else hold(facts, { why: "forked", text: `forked from ${data.from.run} after step ${data.from.step}` });
}

/** What the steps since then cost still counts. The labels, name and priority stay. */
function applyRewound({ data }: EventOf<"run.rewound">, facts: RunFacts): void {
  facts.rewinding = null;
  facts.rewinds += 1;
  facts.finish = null;
  facts.queued = null;
  facts.stopRequested = null;
  facts.sandbox = null;
  facts.asked = [];
  facts.step = data.toStep;
  facts.model = data.model;
  facts.budgets = data.budgets;
  resetHealth(facts.health.driver);
  resetHealth(facts.health.sandbox);
  hold(facts, { why: "rewound", text: `rewound to step ${data.toStep}` });
}

function hold(facts: RunFacts, paused: NonNullable<RunFacts["paused"]>): void {
  facts.status = "paused";
  facts.paused = paused;
}

/** A sub-agent's tool call reports what the sub-run spent. */
function applyToolEnded({ data: { details } }: EventOf<"tool.ended">, facts: RunFacts): void {
  const spent = details as { usage?: Usage; costUsd?: number | null } | null | undefined;
  if (spent?.usage) spend({ data: { usage: spent.usage, costUsd: spent.costUsd ?? null } }, facts);
}

/** Only the first answer counts. */
function applyAnswered({ data }: EventOf<"permission.answered">, facts: RunFacts): void {
  const at = facts.asked.findIndex((each) => each.question === data.question);
  const [question] = at === -1 ? [] : facts.asked.splice(at, 1);
  if (question?.kind === "budget" && data.answer !== "deny" && data.budgets) facts.budgets = { ...facts.budgets, ...data.budgets };
}

function applyHealth(event: HealthEvent, facts: RunFacts): void {
  foldHealth(facts.health[event.data.subject.kind], event);
}

function applyGuardian(event: GuardianEvent, facts: RunFacts): void {
  foldGuardian(facts.guardian, event);
}

function spend({ data: spent }: { data: { usage: Usage; costUsd: number | null } }, facts: RunFacts): void {
  facts.usage = addUsage(facts.usage, spent.usage);
  facts.costUsd = facts.costUsd === null || spent.costUsd === null ? null : facts.costUsd + spent.costUsd;
}
