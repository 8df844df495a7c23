import { digestOf } from "../../agent/file/define-agent.ts";
import type { Model } from "../../agent/model/model.ts";
import { raisedBudgets } from "../../agent/run-budgets.ts";
import type { RunState } from "../../agent/run-state.ts";
import type { AgentDefinition } from "../../contract/agent/agent.ts";
import { CaissonError } from "../../contract/error/error.ts";
import type { Budgets, MessageMode, MessageSource } from "../../contract/run/run.ts";
import { RunCreated, RunQueued } from "../../contract/run/run-event.ts";
import { isAtFork, type RunFacts } from "../../contract/run/run-facts.ts";
import type { RunDriver } from "../../contract/run/run-queue.ts";
import { LOCAL_OWNER, ownedBy } from "../../contract/token/owner.ts";
import { asJson } from "../../lib/as-json.ts";
import { defined } from "../../lib/defined.ts";
import { newId } from "../../lib/new-id.ts";
import { isHolderGone } from "../../sandbox/process-identity.ts";
import { withSubAgents } from "../agents/sub-agents.ts";
import { appendUnowned } from "../vocabulary/append-unowned.ts";
import { headOfRun } from "../vocabulary/head-of-run.ts";
import { refuseRewinding } from "../vocabulary/refuse-rewinding.ts";
import { runStream } from "../vocabulary/station-names.ts";
import { driveOwned, type RunsOptions } from "./drive.ts";
import { foldRun } from "./owned-journal.ts";
import { type ReopenRun, reopenRun } from "./reopen-run.ts";

export interface NewRun {
  definition: AgentDefinition;
  task: string;
  model: string;
  session: string;
  budgets?: Budgets;
  parent?: { run: string; call: string };
  id?: string;
  name?: string;
  traceparent?: string;
  /** The owner; defaults to the user of this machine. */
  owner?: string;
  labels?: Readonly<Record<string, string>>;
  driver?: RunDriver;
  /** Set if a station should drive it as soon as there is room. */
  queued?: NewQueued;
}

export type NewQueued = (typeof RunQueued)["shape"]["data"]["_output"];

/**
 * Acquires the run's lease and drives the run to its end from wherever it is. Throws `conflict` if another process
 * holds it, `cancelled` if the signal released it, `superseded` if another process took it over, and `unavailable` if
 * the log could not be used for too long. In these cases the run stays as it is.
 */
export type DriveRun = (run: string, options: DriveRunOptions) => Promise<RunState>;

export interface DriveRunOptions {
  signal: AbortSignal;
  model?: (name: string) => Promise<Model>;
  /** The kind of driver. Defaults to `caller`. */
  driver?: RunDriver;
  /** True if the caller retries transient failures. Such a failure is then thrown even before the first step. */
  isRetried?: boolean;
}

/** The engine behind the run verbs: creates runs, drives them, and accepts messages and answers to them. */
export interface Runs {
  create(request: NewRun): Promise<string>;
  drive: DriveRun;
  /** Returns the complete state, folded from the whole log. */
  state(run: string): Promise<RunState>;
  /** Returns the stored facts. The cost does not depend on the length of the log. Throws `not_found`. */
  facts(run: string): Promise<RunFacts>;
  /** Returns the current driver, or null. */
  driverOf(run: string): Promise<string | null>;
  /**
   * Resolves with the message's id. The run's `model.requested` event that names this id is its receipt. Throws
   * `conflict` for a run that has ended.
   */
  send(run: string, message: { text: string; mode: MessageMode; source: MessageSource }): Promise<string>;
  /**
   * Throws `not_found` for a question that is not open, for example because another client answered it. Allowing a
   * question about a budget raises the budgets that the answer leaves out by half.
   */
  answer(
    run: string,
    answer: { question?: string; answer: "allow" | "always" | "deny"; text?: string; budgets?: Budgets; by: string },
  ): Promise<void>;
  /** Interrupts the run and holds it until `resume`. */
  pause(run: string, options: { text: string }): Promise<void>;
  resume(run: string, options: { by: string }): Promise<void>;
  /** Reopens a run that has ended; see `reopenRun`. */
  reopen(run: string, request: ReopenRun): Promise<number>;
  /**
   * Asks the run to end, and ends it if it has no driver. Does nothing for a run that was stopped before. Throws
   * `conflict` for one that ended otherwise.
   */
  stop(run: string, options: { by: string }): Promise<void>;
}

export function createRuns(options: RunsOptions): Runs {
  const { log } = options;
  const holder = JSON.stringify(options.identity);
  const driverOf = async (run: string): Promise<string | null> => {
    const lease = await log.holder(runStream(run));
    return lease && !isHolderGone(options, lease.holder) ? lease.holder : null;
  };

  const runs: Runs = {
    async create(request) {
      const run = request.id ?? newId("run");
      const definition = await withSubAgents(request.definition, (name) => options.agent(name, request.owner ?? LOCAL_OWNER));
      const queued = request.queued === undefined ? [] : [RunQueued.make(request.queued)];
      options.crashpoint("run.created:before");
      await log.append(runStream(run), [createdEvent(run, { ...request, definition }), ...queued], { expectedSeq: 0 });
      options.crashpoint("run.created:after");
      return run;
    },
    drive: (run, { signal, ...rest }) => driveOwned(run, { ...options, holder, runs, signal, ...defined(rest) }),
    state: async (run) => (await foldRun(log, run)).state,
    facts: async (run) => (await headOfRun(log, run)).facts,
    driverOf,
    async send(run, message) {
      const id = newId("msg");
      await appendUnowned(log, run, (facts) => {
        refuseRewinding(facts);
        // A message is what a fork waits for.
        const resumed = isAtFork(facts) ? [{ type: "run.continued" as const, data: { by: message.source } }] : [];
        return [...resumed, { type: "message.received", data: { message: id, ...message } }];
      });
      return id;
    },
    async answer(run, answer) {
      const { question: wanted, budgets, ...rest } = answer;
      await appendUnowned(log, run, (facts) => {
        refuseRewinding(facts);
        const { asked: openQuestions } = facts;
        const question = wanted === undefined ? openQuestions[0] : openQuestions.find((each) => each.question === wanted);
        const isRaised = question?.kind === "budget" && answer.answer !== "deny";
        const raised = isRaised ? { budgets: { ...raisedBudgets(facts), ...budgets } } : {};
        if (question) return [{ type: "permission.answered", data: { question: question.question, ...rest, ...raised } }];
        throw new CaissonError("not_found", `the run ${run} has no such open question`, {
          hint: `It may have been answered already. Run \`caisson logs ${run}\` to see questions and answers.`,
        });
      });
    },
    pause: (run, { text }) =>
      appendUnowned(log, run, (facts) => {
        refuseRewinding(facts);
        return [{ type: "run.paused", data: { why: "user", text } }];
      }),
    resume: (run, { by }) =>
      appendUnowned(log, run, (facts) => {
        refuseRewinding(facts);
        return [{ type: "run.continued", data: { by } }];
      }),
    reopen: (run, request) => reopenRun(run, request, { ...options, holder }),
    async stop(run, { by }) {
      try {
        // One request is enough.
        await appendUnowned(log, run, (facts) => {
          refuseRewinding(facts);
          return facts.stopRequested === null ? [{ type: "run.stop_requested", data: { by } }] : [];
        });
        // Without a driver, no other process will end it.
        if ((await driverOf(run)) === null) await runs.drive(run, { signal: new AbortController().signal });
      } catch (error) {
        if (!isStopped(error)) throw error;
      }
    },
  };
  return runs;
}

/**
 * Returns whether the error means that the run was stopped before, or that another caller is stopping it: the request
 * is fulfilled, or soon will be.
 */
function isStopped(error: unknown): boolean {
  if (!(error instanceof CaissonError) || error.code !== "conflict") return false;
  return error.details?.finish === "cancelled" || error.details?.owner !== undefined;
}

function createdEvent(run: string, request: NewRun) {
  const { definition } = request;
  return RunCreated.make({
    run,
    parent: request.parent ?? null,
    session: request.session,
    agent: { name: definition.name, digest: digestOf(definition), definition: asJson(definition) },
    task: request.task,
    model: request.model,
    budgets: request.budgets ?? {},
    ...ownedBy(request.owner),
    ...defined({ name: request.name, traceparent: request.traceparent, labels: labelsOf(request), driver: request.driver }),
  });
}

/** Returns undefined for no labels, so the event is the same as before labels existed. */
function labelsOf({ labels = {} }: NewRun): NewRun["labels"] {
  return Object.keys(labels).length === 0 ? undefined : labels;
}
