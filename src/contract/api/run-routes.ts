import { z } from "zod";
import { auditName } from "../audit-text.ts";
import { ChangeLabels } from "../change-labels.ts";
import { Budgets, RunId } from "../run.ts";
import { RunEvent } from "../run-event.ts";
import { Priority, RunQueueView } from "../run-queue.ts";
import {
  AnswerQuestion,
  ContinueRun,
  FedEvent,
  ListRuns,
  LogDamage,
  RunList,
  RunView,
  SendMessage,
  SentMessage,
  StartRun,
} from "../run-verbs.ts";
import { NameOrId } from "./name-or-id.ts";
import { reachOfContinued, reachOfRun } from "./reach.ts";
import type { Route } from "./route.ts";
import { EventFilter } from "./streams.ts";

const RUNS_PER_PAGE = 50;
const RUNS_PER_PAGE_MAX = 1000;
const EVENTS_PER_PAGE = 100;
const EVENTS_PER_PAGE_MAX = 5000;
/** How long a request waits at most for a run to end: shorter than what proxies between allow. */
const WAIT_MS_MAX = 25_000;

/** An event with its place in the run's log, which is the id of the server-sent event, too. */
export const NumberedEvent = RunEvent.and(z.object({ seq: z.int().positive() }));

const EventPage = z.object({
  events: z.array(NumberedEvent),
  /** For `fromSeq` of the next page; null at the end of what there is. */
  next: z.int().positive().nullable(),
});

const params = { run: NameOrId };
const reason = z.strictObject({ text: z.string().min(1).max(10_000).default("paused over the API") });

export const runRoutes = {
  "runs.start": {
    summary: "Start a run. It is there when this answers, and the station drives it as soon as there is room; until then it is `queued`.",
    scope: "run",
    body: StartRun,
    reaches: reachOfRun,
    audited: ({ name, agent }: StartRun) => ({
      name: auditName(name),
      agent: auditName(typeof agent === "string" ? agent : undefined),
    }),
    answer: { status: 201, json: RunView },
  },
  "runs.list": {
    summary: "List runs, the last changed first.",
    scope: "read",
    query: ListRuns.omit({ parent: true, limit: true }).extend({
      /** Sub-runs of this run; `none`: those that are nobody's. */
      parent: z.union([RunId, z.literal("none")]).optional(),
      limit: z.int().min(1).max(RUNS_PER_PAGE_MAX).default(RUNS_PER_PAGE),
    }),
    answer: { json: RunList },
  },
  "runs.get": { summary: "One run.", scope: "read", params, answer: { json: RunView } },
  "runs.events": {
    summary: "The events of a run: a page as JSON, or all as server-sent events until the run ends, whose ids are sequence numbers.",
    scope: "read",
    params,
    query: z.strictObject({
      fromSeq: z.int().min(1).optional(),
      limit: z.int().min(1).max(EVENTS_PER_PAGE_MAX).default(EVENTS_PER_PAGE),
    }),
    answer: { json: EventPage, events: NumberedEvent },
  },
  "runs.allEvents": {
    summary:
      "The events of all runs, sandboxes, workflows, specs, ships and merges as server-sent events, then those to come: from the first, or from after the position that is the id of an earlier one; those that pass the filter.",
    scope: "read",
    query: EventFilter.extend({ afterPosition: z.int().min(0).optional() }),
    answer: { events: FedEvent },
  },
  "runs.lastPosition": {
    summary: "The position of the last event there is, to follow those to come after it.",
    scope: "read",
    answer: { json: z.object({ position: z.int().nonnegative() }) },
  },
  "runs.send": {
    summary: "Send a run a message.",
    scope: "run",
    params,
    body: SendMessage.omit({ source: true }),
    answer: { status: 202, json: SentMessage },
  },
  "runs.answer": {
    summary: "Answer a question of a run: the one that is named, or the oldest.",
    scope: "run",
    params,
    body: AnswerQuestion.omit({ by: true }),
    answer: {},
  },
  "runs.pause": {
    summary: "Interrupt what a run does, and hold it until it is resumed.",
    scope: "run",
    params,
    body: reason,
    bodyOptional: true,
    answer: {},
  },
  "runs.resume": {
    summary: "Go on with a run that was held, whose process died, or that reached its bounds.",
    scope: "run",
    params,
    body: z.strictObject({ detached: z.boolean().default(false), budgets: Budgets.optional(), reopens: z.boolean().optional() }),
    bodyOptional: true,
    answer: { json: RunView },
  },
  "runs.continue": {
    summary: "The next turn of a run that has ended: the message follows its whole conversation, on the same files.",
    scope: "run",
    params,
    body: ContinueRun.omit({ by: true }),
    reaches: reachOfContinued,
    answer: { json: RunView },
  },
  "runs.wait": {
    summary: "A run once it has ended, or as it is when that takes longer than `timeoutMs`: then ask again.",
    scope: "read",
    params,
    query: z.strictObject({ timeoutMs: z.int().min(0).max(WAIT_MS_MAX).default(WAIT_MS_MAX) }),
    answer: { json: RunView },
  },
  "runs.remove": { summary: "Forget a run that is over, with its sub-runs. Its session stays.", scope: "run", params, answer: {} },
  "runs.check": {
    summary: "Read the whole log, and say what is damaged.",
    scope: "admin",
    answer: { json: z.object({ damage: z.array(LogDamage) }) },
  },
  "runs.adopt": {
    summary: "Let the station go on with a run whose process died.",
    scope: "run",
    params,
    answer: { json: RunView },
  },
  "runs.prioritize": {
    summary: "Change the priority of a run that waits in the queue.",
    scope: "run",
    params,
    body: z.strictObject({ priority: Priority }),
    answer: { json: RunView },
  },
  "runs.label": {
    summary: "Change the labels of a run, also after its end: new values by key; null takes a label away.",
    scope: "run",
    params,
    body: ChangeLabels,
    answer: { json: RunView },
  },
  "runs.queue": {
    summary: "The queue: which runs wait, in the order in which they are started, and for what; what is at work, and the bounds.",
    scope: "read",
    answer: { json: RunQueueView },
  },
  "runs.stop": { summary: "End a run. Answers when it has ended.", scope: "run", params, answer: {} },
} as const satisfies Record<string, Route>;
