import { createHash } from "node:crypto";
import type { JobView } from "../../contract/durable/durable-job.ts";
import { CaissonError } from "../../contract/error/error.ts";
import { parseRequest } from "../../contract/error/parse-request.ts";
import type { SessionCleanup } from "../../contract/session/session.ts";
import type { WorkflowDefinition } from "../../contract/workflow/workflow.ts";
import type { NewWorkflowEvent, WorkflowEvent, WorkflowSchedule } from "../../contract/workflow/workflow-event.ts";
import { AnswerApproval, SendSignal, StartWorkflow, type WorkflowView } from "../../contract/workflow/workflow-verbs.ts";
import { defined } from "../../lib/defined.ts";
import { idFrom, newId } from "../../lib/new-id.ts";
import type { JobVerbs } from "../../verbs/durable-jobs.ts";
import type { WorkflowVerbs } from "../../verbs/workflows.ts";
import { checkAgainst, withDefaults } from "../../workflow/check-value.ts";
import { outputOf } from "../../workflow/decide.ts";
import type { Evaluator } from "../../workflow/expressions/evaluate.ts";
import { checkCron, firingId, nextTime, OF_SCHEDULE } from "../../workflow/schedule.ts";
import type { Json, WorkflowState } from "../../workflow/state.ts";
import type { StepEffect } from "../../workflow/turn.ts";
import { isTooDeep, refusedDefinition } from "../../workflow/validate.ts";
import { refuseSecretIn } from "../../workspace/git/address.ts";
import type { Folded } from "../durable/durable-log.ts";
import { type Jobs, refuseEnded } from "../durable/durable-verbs.ts";
import type { ExpressionThread } from "./expression-thread.ts";
import { digestOfEffect, type StepWork } from "./workflow-kind.ts";
import { workflowKind } from "./workflow-names.ts";

const INPUT_BYTES_MAX = 256 * 1024;
const SIGNALS_MAX = 1000;

export type WorkflowJobs = Jobs<WorkflowState, NewWorkflowEvent>;

/** Creates the workflow verbs over the jobs that the driver drives. */
export function createLocalWorkflows(
  jobs: WorkflowJobs,
  { evaluate: evaluator, check }: Pick<ExpressionThread, "evaluate" | "check">,
): WorkflowVerbs {
  const toWorkflowView = async ({ id }: { id: string }): Promise<WorkflowView> => {
    const [head, folded] = [await jobs.get(id), await jobs.fold(id)];
    return { ...head, ...detailsOf(folded, await outputOrNull(folded, evaluator)) };
  };
  const viewAfter = async (saying: Promise<JobView>) => await toWorkflowView(await saying);
  return {
    ...(jobs as unknown as JobVerbs<WorkflowEvent, WorkflowView>),
    get: async (word) => await toWorkflowView({ id: await jobs.find(word) }),
    wait: async (word, options) => await viewAfter(jobs.wait(word, options)),
    cancel: async (word, options) => await viewAfter(jobs.cancel(word, options)),
    pause: async (word, options) => await viewAfter(jobs.pause(word, options)),
    resume: async (word, options) => await viewAfter(jobs.resume(word, options)),
    async remove(word) {
      const { id, finish, damage } = await jobs.get(word);
      if (finish !== null || damage !== null) await forgetParts(jobs, id);
      await jobs.remove(id);
    },
    async validate(definition) {
      return { problems: await check(definition, { owner: "" }) };
    },
    async start(rawRequest, { owner } = {}) {
      const request = parseRequest(StartWorkflow, rawRequest, "a workflow");
      const problems = await check(request.definition, { owner: owner ?? "" });
      if (problems.length > 0) throw refusedDefinition(problems);
      const definition = request.definition as unknown as WorkflowDefinition;
      const input = checkedInput(definition, request.input);
      const { source = null, model = null, cleanup, schedule } = request;
      refuseSecretIn(source);
      if (schedule !== undefined) checkCron(schedule.cron);
      const id = newId(workflowKind.idPrefix);
      const root = `${workflowKind.prefix}${id}`;
      await jobs.start({
        id,
        title: definition.name,
        owner,
        events: [definedEvent({ definition, input, source, model, root, depth: 0, ...defined({ cleanup, schedule }) })],
      });
      return await toWorkflowView({ id });
    },
    async signal(word, request) {
      const { name, data, key = null, by } = parseRequest(SendSignal, request, "a signal");
      checkSize(data, "the signal's data");
      return await viewAfter(
        jobs.say(word, ({ facts, state }) => {
          refuseEnded(workflowKind, facts);
          if (key !== null && state.signals.some((signal) => signal.key === key)) return [];
          if (state.signals.length >= SIGNALS_MAX)
            throw new CaissonError("busy", `the workflow ${facts.id} has received ${SIGNALS_MAX} signals, the limit`);
          return [{ type: "workflow.signalled", data: { name, key, data, by } }];
        }),
      );
    },
    async approve(word, request) {
      const { path: wanted, approved, text, by } = parseRequest(AnswerApproval, request, "an answer");
      return await viewAfter(
        jobs.say(word, ({ facts, state }) => {
          refuseEnded(workflowKind, facts);
          const { path, attempt } = waitingApproval(state, facts.id, wanted);
          return [{ type: "workflow.answered", data: { path, attempt, approved, text, by } }];
        }),
      );
    },
    async retry(word, { by }) {
      const view = await jobs.say(word, ({ facts }) => {
        if (facts.finish === "failed" || facts.finish === "timed_out" || facts.finish === "cancelled") {
          return [
            { type: "driven.reopened", data: { by } },
            { type: "workflow.retried", data: { by } },
          ];
        }
        throw new CaissonError("conflict", `the workflow ${facts.id} has not failed (it is ${facts.finish ?? facts.status})`, {
          hint:
            facts.finish === null ? `It may be waiting: caisson workflow show ${facts.id}` : "Start it again: caisson workflow run FILE",
        });
      });
      jobs.drive(view.id);
      return await toWorkflowView(view);
    },
  };
}

function waitingApproval(state: WorkflowState, id: string, wanted: string | undefined): { path: string; attempt: number } {
  const waiting = [...state.steps].filter(([path, { kind, status, answer }]) => {
    return kind === "approval" && status === "running" && answer === null && (wanted === undefined || path === wanted);
  });
  const [only] = waiting;
  if (only === undefined) {
    throw new CaissonError("not_found", `no ${wanted === undefined ? "step" : `step ${wanted}`} of ${id} is waiting for an answer`, {
      hint: `It may have been answered already: caisson workflow show ${id}`,
    });
  }
  if (waiting.length > 1) {
    throw new CaissonError("invalid", `${waiting.length} steps of ${id} are waiting for an answer`, {
      hint: `Name one: --step ${waiting.map(([path]) => path).join(" | ")}`,
      details: { candidates: waiting.map(([path]) => path) },
    });
  }
  return { path: only[0], attempt: only[1].attempt };
}

function definedEvent(data: {
  definition: WorkflowDefinition;
  input: Json;
  source: WorkflowState["source"];
  model: string | null;
  root: string;
  depth: number;
  cleanup?: SessionCleanup;
  schedule?: WorkflowSchedule;
}): NewWorkflowEvent {
  const digest = createHash("sha256").update(JSON.stringify(data.definition)).digest("hex");
  return { type: "workflow.defined", data: { ...data, definition: data.definition as unknown as Json, digest } };
}

/** Checks the input against the definition's schema, and fills in its defaults. */
function checkedInput({ input: schema }: WorkflowDefinition, rawInput: Json): Json {
  if (isTooDeep(rawInput)) throw new CaissonError("invalid", "the input is nested too deeply");
  checkSize(rawInput, "the input");
  if (schema === undefined) return rawInput;
  const input = withDefaults(schema, rawInput);
  checkAgainst(schema, input, "input");
  return input;
}

function checkSize(value: Json, what: string): void {
  const bytes = Buffer.byteLength(JSON.stringify(value));
  if (bytes <= INPUT_BYTES_MAX) return;
  throw new CaissonError("too_large", `${what} has ${bytes} bytes; at most ${INPUT_BYTES_MAX} are taken`, {
    hint: "Put larger data into the workspace as a file.",
  });
}

/**
 * Returns the output of a completed workflow. It could be computed when the workflow ended; if it cannot be computed
 * now, we return null.
 */
async function outputOrNull({ state, facts }: Folded<WorkflowState>, evaluator: Evaluator): Promise<Json> {
  if (facts.finish !== "completed") return null;
  return await outputOf(state, facts, evaluator).catch((error: unknown) => {
    if (error instanceof CaissonError) return null;
    throw error;
  });
}

function detailsOf({ state, facts }: Folded<WorkflowState>, output: Json): Omit<WorkflowView, keyof JobView> {
  const { definition, digest, input, data, root } = state;
  const steps = [...state.steps].map(([path, { kind, status, attempt, child, output, error, due, retryAt, startedAt, endedAt }]) => {
    return { path, kind, status, attempt, child, output, error, due: retryAt ?? due, startedAt, endedAt };
  });
  return { definition: definition as unknown as Json, digest, input, data, root, schedule: scheduleOf(state, facts), steps, output };
}

function scheduleOf({ schedule, started }: WorkflowState, { finish }: Folded<WorkflowState>["facts"]): WorkflowView["schedule"] {
  if (schedule === null) return null;
  const { cron, overlap, passedOver } = schedule;
  return { cron, overlap, next: finish === null ? (nextTime(schedule)?.toISOString() ?? null) : null, started, passedOver };
}

/** How many ended instances of a schedule we keep. */
const INSTANCES_KEPT = 100;

/** Implements workflow steps as separate durable jobs whose parent is the workflow. */
export function createSubWorkflowWork(jobs: () => WorkflowJobs, evaluator: Evaluator): StepWork {
  const idOf = (effect: Pick<StepEffect, "id">) => idFrom("wf", digestOfEffect(effect.id));
  return {
    async start(effect, { facts }) {
      const id = idOf(effect);
      if (effect.cancel === true) {
        await cancelIfCreated(jobs(), id);
        return { status: "cancelled" };
      }
      if (effect.step.kind !== "workflow") throw new CaissonError("internal", `${effect.path} is not a workflow`);
      const { definition } = effect.step;
      const rawInput = (effect.given as { input: Json }).input;
      const stream = `${workflowKind.prefix}${facts.id}`;
      const events = [
        definedEvent({
          definition,
          input: checkedInput(definition, rawInput),
          source: effect.source,
          model: effect.model,
          root: effect.root ?? `${workflowKind.prefix}${id}`,
          depth: effect.depth + 1,
          ...defined({ cleanup: cleanupWithin(effect, definition) }),
        }),
      ];
      await jobs().start({ id, title: definition.name, owner: facts.owner, parent: stream, events });
      return { child: `${workflowKind.prefix}${id}` };
    },
    async collect(effect, { facts: schedule, signal }) {
      const id = (effect.child ?? "").slice(workflowKind.prefix.length);
      if (effect.cancel === true) await cancelIfCreated(jobs(), id);
      else signal.throwIfAborted();
      if (effect.depth === OF_SCHEDULE) await forget(jobs(), idOf({ id: firingId(schedule.id, effect.attempt - INSTANCES_KEPT) }));
      const { facts, state } = await jobs().fold(id);
      if (facts.finish === "completed") return { status: "completed", output: await outputOf(state, facts, evaluator) };
      if (facts.finish === "cancelled") return { status: "cancelled" };
      return {
        status: "failed",
        error: { code: facts.finish ?? "lost", text: facts.text ?? `the workflow ${id} ended as ${facts.finish}` },
      };
    },
  };
}

/** A workflow within another one may decide for itself. An instance of a schedule has the definition of that. */
function cleanupWithin({ cleanup, depth }: StepEffect, definition: WorkflowDefinition): SessionCleanup | undefined {
  const own = depth === OF_SCHEDULE ? undefined : definition.cleanup;
  return own ?? cleanup ?? undefined;
}

/** Removes an ended workflow and those that were its steps. The sessions of its agents stay. */
async function forget(jobs: WorkflowJobs, id: string): Promise<void> {
  await forgetParts(jobs, id);
  await jobs.remove(id).catch((error: unknown) => {
    // It was removed before, or a user continued it and has to remove it.
    if (!(error instanceof CaissonError) || (error.code !== "not_found" && error.code !== "conflict")) throw error;
  });
}

async function forgetParts(jobs: WorkflowJobs, id: string): Promise<void> {
  const parent = `${workflowKind.prefix}${id}`;
  // What was removed is no longer in the list; a part that stays, since somebody continued it, is passed by the cursor.
  for (let cursor: string | undefined; ; ) {
    const { items, next } = await jobs.list({ parent, ...defined({ cursor }) });
    for (const part of items) await forget(jobs, part.id);
    if (next === null) return;
    cursor = next;
  }
}

/** Cancels a workflow if it was created. */
async function cancelIfCreated(jobs: WorkflowJobs, id: string): Promise<void> {
  try {
    await jobs.cancel(id, { by: "workflow" });
    await jobs.wait(id);
  } catch (error) {
    if (!(error instanceof CaissonError) || (error.code !== "conflict" && error.code !== "not_found")) throw error;
  }
}
