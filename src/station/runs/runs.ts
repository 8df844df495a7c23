import { digestOf } from "../../agent/file/define-agent.ts";
import type { Model } from "../../agent/model/model.ts";
import { raisedBudgets } from "../../agent/run-budgets.ts";
import type { RunState } from "../../agent/run-state.ts";
import type { AgentDefinition } from "../../contract/agent.ts";
import { CaissonError } from "../../contract/error.ts";
import { LOCAL_OWNER, ownedBy } from "../../contract/owner.ts";
import type { Budgets, MessageMode, MessageSource } from "../../contract/run.ts";
import { RunCreated, RunQueued } from "../../contract/run-event.ts";
import type { RunFacts } from "../../contract/run-facts.ts";
import type { RunDriver } from "../../contract/run-queue.ts";
import { defined } from "../../lib/defined.ts";
import { newId } from "../../lib/new-id.ts";
import { appendForeign } from "./append-foreign.ts";
import { driveOwned, type RunsOptions } from "./drive.ts";
import { headOfRun, runStream } from "./head-of-run.ts";
import { foldRun } from "./owned-journal.ts";
import { isGone } from "./ownership.ts";
import { type ReopenRun, reopenRun } from "./reopen-run.ts";
import { withSubAgents } from "./sub-agents.ts";

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
  /** Whose it is; absent: the user's of this machine. */
  owner?: string;
  labels?: Readonly<Record<string, string>>;
  driver?: RunDriver;
  /** A station is to drive it, when there is room. */
  queued?: NewQueued;
}

export type NewQueued = (typeof RunQueued)["shape"]["data"]["_output"];

/**
 * Becomes the run's owner and drives it to its end, from wherever it is. Throws `conflict` when another process has it,
 * `cancelled` when the signal let it go, `superseded` when another process took it over meanwhile, `unavailable` when
 * the log could not be used for longer than it waits. The run stays as it is then.
 */
export type DriveRun = (run: string, options: DriveRunOptions) => Promise<RunState>;

export interface DriveRunOptions {
  signal: AbortSignal;
  model?: (name: string) => Promise<Model>;
  /** As what; default `caller`. */
  driver?: RunDriver;
  /** The caller tries again after a failure that may pass: then one before the first step is thrown, too. */
  isRetried?: boolean;
}

/** The engine under the verbs: it makes runs, drives them, and takes what others say to them. */
export interface Runs {
  create(request: NewRun): Promise<string>;
  drive: DriveRun;
  /** Everything, folded from the whole log. */
  state(run: string): Promise<RunState>;
  /** What the log keeps beside the events; costs the same for a long run as for a short one. Throws `not_found`. */
  facts(run: string): Promise<RunFacts>;
  /** Who drives it now. */
  driverOf(run: string): Promise<string | null>;
  /**
   * Resolves with the message's id; its receipt is the run's `model.requested` that names it. Throws `conflict` for a
   * run that has ended.
   */
  send(run: string, message: { text: string; mode: MessageMode; source: MessageSource }): Promise<string>;
  /**
   * Throws `not_found` for a question that is not open, such as one that somebody else has answered. Of an allowed
   * question about a budget, budgets that are not given become half as much again.
   */
  answer(
    run: string,
    answer: { question?: string; answer: "allow" | "always" | "deny"; text?: string; budgets?: Budgets; by: string },
  ): Promise<void>;
  /** Interrupts what it is doing and holds it until `goOn`. */
  pause(run: string, options: { text: string }): Promise<void>;
  goOn(run: string, options: { by: string }): Promise<void>;
  /** Lets a run that has ended go on; see `reopenRun`. */
  reopen(run: string, request: ReopenRun): Promise<number>;
  /**
   * Asks it to end, and ends it when nobody drives it. One that was stopped before is no error; `conflict` for one that
   * ended otherwise.
   */
  stop(run: string, options: { by: string }): Promise<void>;
}

export function createRuns(options: RunsOptions): Runs {
  const { log } = options;
  const owner = JSON.stringify(options.identity);
  const driverOf = async (run: string): Promise<string | null> => {
    const holder = await log.holder(runStream(run));
    return holder && !isGone(options, holder.owner) ? holder.owner : null;
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
    drive: (run, { signal, ...asked }) => driveOwned(run, { ...options, owner, runs, signal, ...defined(asked) }),
    state: async (run) => (await foldRun(log, run)).state,
    facts: async (run) => (await headOfRun(log, run)).facts,
    driverOf,
    async send(run, message) {
      const id = newId("msg");
      await appendForeign(log, run, () => [{ type: "message.received", data: { message: id, ...message } }]);
      return id;
    },
    async answer(run, answer) {
      const { question: wanted, budgets, ...rest } = answer;
      await appendForeign(log, run, (facts) => {
        const { asked } = facts;
        const question = wanted === undefined ? asked[0] : asked.find((each) => each.question === wanted);
        const isRaised = question?.kind === "budget" && answer.answer !== "deny";
        const raised = isRaised ? { budgets: { ...raisedBudgets(facts), ...budgets } } : {};
        if (question) return [{ type: "permission.answered", data: { question: question.question, ...rest, ...raised } }];
        throw new CaissonError("not_found", `the run ${run} has no such open question`, {
          hint: `It may have been answered already; \`caisson logs ${run}\` shows what was asked and answered.`,
        });
      });
    },
    pause: (run, { text }) => appendForeign(log, run, () => [{ type: "run.paused", data: { why: "user", text } }]),
    goOn: (run, { by }) => appendForeign(log, run, () => [{ type: "run.continued", data: { by } }]),
    reopen: (run, request) => reopenRun(run, request, { ...options, owner }),
    async stop(run, { by }) {
      try {
        // Once is enough, whoever asked first.
        await appendForeign(log, run, (facts) => (facts.stopRequested === null ? [{ type: "run.stop_requested", data: { by } }] : []));
        // Nobody drives it: then nobody else will end it.
        if ((await driverOf(run)) === null) await runs.drive(run, { signal: new AbortController().signal });
      } catch (error) {
        if (!isStopped(error)) throw error;
      }
    },
  };
  return runs;
}

/**
 * It was stopped before, or somebody else who stops it was quicker to drive it: what was asked for is done, or being
 * done.
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
    agent: { name: definition.name, digest: digestOf(definition), definition: definition as never },
    task: request.task,
    model: request.model,
    budgets: request.budgets ?? {},
    ...ownedBy(request.owner),
    ...defined({ name: request.name, traceparent: request.traceparent, labels: labelsOf(request), driver: request.driver }),
  });
}

/** What is not said in an event is as it was before there were owners and labels. */
function labelsOf({ labels = {} }: NewRun): NewRun["labels"] {
  return Object.keys(labels).length === 0 ? undefined : labels;
}
