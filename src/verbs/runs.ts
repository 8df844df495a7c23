import { z } from "zod";
import { reachOfContinued, reachOfForked, reachOfRun } from "../contract/api/required-scopes.ts";
import { EventFilter } from "../contract/api/streams.ts";
import { auditName } from "../contract/audit/audit-text.ts";
import { FedEvent } from "../contract/feed/fed-event.ts";
import { RunId } from "../contract/ids.ts";
import { ChangeLabels } from "../contract/label/change-labels.ts";
import { Budgets } from "../contract/run/run.ts";
import { RunEvent } from "../contract/run/run-event.ts";
import { Priority, RunQueueView } from "../contract/run/run-queue.ts";
import { ReplayEvent, ReplayRun } from "../contract/run/run-replay.ts";
import { RunTimeline } from "../contract/run/run-timeline.ts";
import {
  AnswerQuestion,
  ContinueRun,
  type ContinueRunInput,
  ForkedRuns,
  ForkRun,
  type ForkRunInput,
  ListRuns,
  LogDamage,
  RewindRun,
  RewoundRun,
  RunList,
  RunView,
  SendMessage,
  SentMessage,
  StartRun,
  type StartRunInput,
} from "../contract/run/run-verbs.ts";
import { WaitQuery } from "./durable-jobs.ts";
import { type VerbsOf, verb, verbOfType } from "./verb.ts";

const RUNS_PER_PAGE = 50;
const RUNS_PER_PAGE_MAX = 1000;

/** One event of a run, with its place in the run log. */
export const NumberedEvent = RunEvent.and(z.object({ seq: z.int().positive() }));
export type NumberedRunEvent = RunEvent & { seq: number };

/**
 * Runs. A run is named by its id, an id prefix or its name. The verbs throw `not_found` for a run that does not exist,
 * `invalid` for an ambiguous prefix or name (`details.candidates`).
 */
export const runs = {
  /**
   * Creates a run and resolves with it at once. This process drives it until the station closes or `signal` aborts, or
   * a separate process does. Creates nothing if it throws: `invalid`, `conflict` for a session in use, `denied` for an
   * untrusted agent file, `not_found`, `unauthenticated` without a key for the model.
   */
  start: verbOfType<(request: StartRunInput, options?: { signal?: AbortSignal; owner?: string }) => Promise<RunView>>()({
    path: "POST /v1/runs",
    body: StartRun,
    answer: { status: 201, json: RunView },
    reaches: reachOfRun,
    audited: ({ name, agent }: StartRun) => ({
      name: auditName(name),
      agent: auditName(typeof agent === "string" ? agent : undefined),
    }),
    scope: "run",
    owned: "by hand",
    summary: "Start a run. It exists as soon as this answers, and is `queued` until the station has room to drive it.",
  }),
  get: verb({ path: "GET /v1/runs/{run}", gives: RunView, scope: "read", owned: "run", summary: "Get one run." }),
  /** Lists runs, last changed first. */
  list: verbOfType<(options?: ListRuns) => Promise<RunList>>()({
    path: "GET /v1/runs",
    query: ListRuns.omit({ parent: true, limit: true }).extend({
      /** The run whose sub-runs to list; `none` for runs that are not sub-runs. */
      parent: z.union([RunId, z.literal("none")]).optional(),
      limit: z.int().min(1).max(RUNS_PER_PAGE_MAX).default(RUNS_PER_PAGE),
    }),
    answer: { json: RunList },
    scope: "read",
    owned: "by hand",
    summary: "List runs, last changed first.",
  }),
  /**
   * Reads the events from a sequence number on. With `follow`, also yields new ones until the run ends. Throws
   * `internal` if the log is damaged.
   */
  events: verb({
    path: "GET /v1/runs/{run}/events",
    gives: NumberedEvent,
    kind: "log",
    scope: "read",
    owned: "run",
    summary: "List the events of a run: a page as JSON, or server-sent events until it ends, with sequence numbers as ids.",
  }),
  /**
   * Yields the events of all runs, sandboxes and durable jobs after a position, in the order in which they took effect,
   * then new ones until the signal aborts. Loses and repeats nothing.
   */
  allEvents: verbOfType<(options?: { afterPosition?: number; signal?: AbortSignal }) => AsyncIterable<FedEvent>>()({
    path: "GET /v1/events",
    query: EventFilter.extend({ afterPosition: z.int().min(0).optional() }),
    answer: { events: FedEvent },
    kind: "stream",
    scope: "read",
    owned: "by hand",
    summary:
      "Follow the events of all runs, sandboxes, workflows, specs, ships and merges that pass the filter, as server-sent events: from the first, or after a position. An event's id is its position.",
  }),
  /** Returns the position of the last event, to follow only later ones. 0 if there are no events. */
  lastPosition: verb({
    path: "GET /v1/events/position",
    gives: z.int().nonnegative(),
    key: "position",
    scope: "read",
    // The number reveals only that something happened.
    owned: "everyone",
    summary: "Get the position of the last event, to follow only later ones.",
  }),
  /**
   * Resolves when the run has ended. Throws the reason if this process stopped driving it, and `cancelled` if the
   * signal aborts.
   */
  wait: verb({
    path: "GET /v1/runs/{run}/wait",
    takes: WaitQuery,
    gives: RunView,
    kind: "wait",
    scope: "read",
    owned: "run",
    summary: "Wait until a run ends. After `timeoutMs`, answers with its current state.",
  }),
  /** Sends a message to a run. Throws `conflict` for a run that has ended. */
  send: verbOfType<(run: string, message: SendMessage) => Promise<SentMessage>>()({
    path: "POST /v1/runs/{run}/messages",
    body: SendMessage.omit({ source: true }),
    answer: { status: 202, json: SentMessage },
    scope: "run",
    owned: "run",
    summary: "Send a message to a run.",
  }),
  /** Answers a question. Throws `not_found` for a question that is not open, such as one that was already answered. */
  answer: verb({
    path: "POST /v1/runs/{run}/answers",
    takes: AnswerQuestion.omit({ by: true }),
    by: true,
    scope: "run",
    owned: "run",
    summary: "Answer a question of a run: the named one, or the oldest.",
  }),
  /** Interrupts the run and holds it until `resume`. Throws `conflict` for a run that has ended. */
  pause: verb({
    path: "POST /v1/runs/{run}/pause",
    takes: z.strictObject({ text: z.string().min(1).max(10_000).default("paused over the API") }),
    bodyOptional: true,
    scope: "run",
    owned: "run",
    summary: "Interrupt a run, and hold it until it is resumed.",
  }),
  /**
   * Continues a run that was held, whose process died, or that ended without being `done`. Drives it as `start` does,
   * and resolves with the run's state when its driver started. `detached`: a separate process drives it. `budgets`:
   * limits of the whole run, for a run that has ended. Throws `conflict` for a run that is done, that has reached a
   * limit that still applies, or, with `reopens: false`, that has ended at all; `gone` if its session was removed;
   * `unavailable` if the process did not start.
   */
  resume: verbOfType<
    (
      run: string,
      options: { by: string; signal?: AbortSignal; detached?: boolean; budgets?: Budgets; reopens?: boolean },
    ) => Promise<RunView>
  >()({
    path: "POST /v1/runs/{run}/resume",
    body: z.strictObject({ detached: z.boolean().default(false), budgets: Budgets.optional(), reopens: z.boolean().optional() }),
    bodyOptional: true,
    answer: { json: RunView },
    scope: "run",
    owned: "run",
    summary: "Continue a run that was held, whose process died, or that reached its limits.",
  }),
  /**
   * Gives a run that has ended another turn: the message follows its whole conversation, on the same files. The same
   * run is reopened, and its log, cost and diff continue (ADR 22). Drives it and resolves as `resume` does; follow it
   * with `events(run, { fromSeq: view.seq + 1, follow: true })` and `wait`. Throws what `resume` throws, and `conflict`
   * for a run that has not ended: use `send` for that.
   */
  continue: verbOfType<(run: string, request: ContinueRunInput, options?: { signal?: AbortSignal }) => Promise<RunView>>()({
    path: "POST /v1/runs/{run}/continue",
    body: ContinueRun.omit({ by: true }),
    answer: { json: RunView },
    reaches: reachOfContinued,
    scope: "run",
    owned: "run",
    summary: "Give a run that has ended another turn: the message follows its whole conversation, on the same files.",
  }),
  /**
   * Creates runs that continue this one as it was after a step: with its conversation and to-do list, a copy of its
   * files in new sessions, and what was left of its limits. Creates all of them or none. With a text, or if the step
   * was in the middle of a turn, drives them as `start` does; others wait (`paused`, with `why: "forked"`) until
   * `send`, `continue` or `resume`. Throws `not_found` for a step that does not exist, `conflict` for one that has not
   * finished, for a run that is being rewound and for a limit that is used up, `unsupported` if the files after the
   * step were not stored, `gone` if the session was removed, `invalid` for a sub-run, `exists` for a name that is
   * taken.
   */
  fork: verbOfType<(run: string, request: ForkRunInput, options?: { signal?: AbortSignal }) => Promise<RunView[]>>()({
    path: "POST /v1/runs/{run}/fork",
    body: ForkRun.omit({ by: true }),
    bodyOptional: true,
    answer: { status: 201, json: ForkedRuns },
    reaches: reachOfForked,
    scope: "run",
    owned: "run",
    summary: "Create runs that continue this one as it was after a step: its conversation, files and remaining limits.",
  }),
  /**
   * Takes the run back to a step: conversation and files are as they were then, and it waits (`paused`, with
   * `why: "rewound"`) until `send`, `continue` or `resume`. A driver is interrupted and releases the run first. A fork
   * (`tail`) preserves the present. What was spent still counts. Throws what `fork` throws, `conflict` also if another
   * run has used the files since, and `timeout` if the driver does not release the run.
   */
  rewind: verb({
    path: "POST /v1/runs/{run}/rewind",
    takes: RewindRun,
    by: true,
    gives: RewoundRun,
    scope: "run",
    owned: "run",
    summary: "Take a run back to a step: its conversation and files. A fork preserves what is taken back.",
  }),
  /** Returns the steps of a run, without those that were rewound, and its forks. Throws `not_found`. */
  timeline: verb({
    path: "GET /v1/runs/{run}/timeline",
    gives: RunTimeline,
    scope: "read",
    owned: "run",
    summary: "Get the steps of a run, what each changed and cost, and the forks of the run.",
  }),
  /** Changes the priority of a queued run. Throws `conflict` for a run that is not queued. */
  prioritize: verb({
    path: "POST /v1/runs/{run}/priority",
    takes: z.strictObject({ priority: Priority }),
    by: true,
    gives: RunView,
    scope: "run",
    owned: "run",
    summary: "Change the priority of a queued run.",
  }),
  /** Changes labels, even after the run's end. Null removes a label. Throws `invalid`. */
  label: verb({
    path: "PATCH /v1/runs/{run}/labels",
    takes: ChangeLabels,
    by: true,
    apart: true,
    gives: RunView,
    scope: "run",
    owned: "run",
    summary: "Change the labels of a run, even after its end: new values by key; null removes a label.",
  }),
  /**
   * Lets the station continue a run that has no driver. Throws `conflict` if it has ended or its driver is alive.
   * Without a running station, the next one takes it.
   */
  adopt: verb({
    path: "POST /v1/runs/{run}/adopt",
    by: true,
    gives: RunView,
    scope: "run",
    owned: "run",
    summary: "Let the station continue a run whose process died.",
  }),
  /** Lists the runs that wait for a station to drive them, in queue order. */
  queue: verb({
    path: "GET /v1/queue",
    gives: RunQueueView,
    scope: "read",
    owned: "by hand",
    summary: "Show the queue: the waiting runs in order and what each waits for, the runs at work, and the limits.",
  }),
  /**
   * Resolves when the run has ended. Stopping twice is not an error. Throws `conflict` for a run that ended otherwise,
   * `timeout` if its driver does not answer, `cancelled` if the signal aborts: the run was asked to stop, and has not
   * ended yet.
   */
  stop: verb({
    path: "POST /v1/runs/{run}/stop",
    by: true,
    signal: true,
    scope: "run",
    owned: "run",
    summary: "Stop a run. Answers when it has ended.",
  }),
  /**
   * Removes a run that has ended, with its sub-runs and their logs. Its session stays. Throws `conflict` for an active
   * run.
   */
  remove: verb({
    path: "DELETE /v1/runs/{run}",
    scope: "run",
    owned: "run",
    summary: "Remove a run that has ended, with its sub-runs. Its session stays.",
  }),
  /**
   * Runs the loop of a run again from its log, with the recorded answers of the model, and yields each step, then the
   * result. Compares every event with the recorded one. The tools' results are the recorded ones as well; with live
   * tools, the tools also run again, without network, on a copy of the files that the session began with, and their
   * results are compared up to the first step that differs. Never calls a model. Throws `gone` for an incomplete
   * recording, `internal` for a damaged log, `invalid` for a pattern, `unsupported` if the files were not stored,
   * `cancelled`.
   */
  replay: verb({
    path: "POST /v1/runs/{run}/replay",
    takes: ReplayRun,
    bodyOptional: true,
    signal: true,
    gives: ReplayEvent,
    kind: "items",
    scope: "run",
    owned: "run",
    summary: "Run the loop of a run again from its log, and compare: progress and each step, then the result.",
  }),
  /** Reads the whole log and lists the damage. */
  check: verb({
    path: "GET /v1/log/check",
    gives: z.array(LogDamage),
    key: "damage",
    scope: "admin",
    owned: "admin",
    summary: "Read the whole log and list the damage.",
  }),
};

export type RunVerbs = VerbsOf<typeof runs>;
