// biome-ignore-all lint/suspicious/noTemplateCurlyInString: expressions of workflows are written so.
import fc from "fast-check";
import { expect, test } from "vitest";
import { emptyJobFacts } from "../contract/durable/durable-job.ts";
import type { WorkflowDefinition, WorkflowStep } from "../contract/workflow/workflow.ts";
import type { NewWorkflowEvent, OwnWorkflowEvent, StepError } from "../contract/workflow/workflow-event.ts";
import { createWorkflowKind } from "../station/workflows/workflow-kind.ts";
import { decideWorkflow, outputOf } from "./decide.ts";
import { evaluateHere } from "./expressions/evaluate.ts";
import { applyToWorkflow, emptyWorkflow, type Json, type WorkflowState } from "./state.ts";
import { checkDefinition } from "./testing-definitions.ts";
import type { StepEffect } from "./turn.ts";

/** What a step does. A command fails this many times, and then prints its name. */
type Plan =
  | { kind: "command"; failures: number; attempts: number; when: boolean | null }
  | { kind: "fail" }
  | { kind: "set" }
  | { kind: "switch"; chosen: number; cases: Plan[][]; other: Plan[] | null }
  | { kind: "parallel"; branches: Plan[][]; join: "all" | "any" | number; collect: boolean }
  | { kind: "foreach"; items: number; concurrency: number; steps: Plan[]; collect: boolean }
  | { kind: "try"; steps: Plan[]; caught: Plan[] | null; last: Plan[] | null; attempts: number };

const plans = (isOrdered: boolean) =>
  fc.letrec<{ plan: Plan; list: Plan[] }>((tie) => ({
    list: fc.array(tie("plan"), { minLength: 1, maxLength: 3 }),
    plan: fc.oneof(
      { depthSize: "small", withCrossShrink: true },
      fc.record({
        kind: fc.constant("command" as const),
        failures: fc.nat(3),
        attempts: fc.integer({ min: 1, max: 3 }),
        when: fc.constantFrom(null, null, true, false),
      }),
      fc.record({ kind: fc.constant("set" as const) }),
      fc.record({ kind: fc.constant("fail" as const) }),
      fc.record({
        kind: fc.constant("switch" as const),
        chosen: fc.nat(3),
        cases: fc.array(tie("list"), { minLength: 1, maxLength: 2 }),
        other: fc.option(tie("list")),
      }),
      fc
        .record({
          kind: fc.constant("parallel" as const),
          branches: fc.array(tie("list"), { minLength: 1, maxLength: 3 }),
          join: isOrdered ? fc.constant("all" as const) : fc.constantFrom("all" as const, "any" as const, 1, 2),
          collect: isOrdered ? fc.constant(true) : fc.boolean(),
        })
        .map((plan): Plan => ({ ...plan, join: typeof plan.join === "number" ? Math.min(plan.join, plan.branches.length) : plan.join })),
      fc.record({
        kind: fc.constant("foreach" as const),
        items: fc.nat(3),
        concurrency: fc.integer({ min: 1, max: 3 }),
        steps: tie("list"),
        collect: isOrdered ? fc.constant(true) : fc.boolean(),
      }),
      fc.record({
        kind: fc.constant("try" as const),
        steps: tie("list"),
        caught: fc.option(tie("list")),
        last: fc.option(tie("list")),
        attempts: fc.integer({ min: 1, max: 2 }),
      }),
    ),
  })).list;

/** Writes the definition of a plan. Steps are named by consecutive numbers. */
function written(list: readonly Plan[], next: () => number): WorkflowStep[] {
  return list.map((plan) => writtenStep(plan, next));
}

function writtenStep(plan: Plan, next: () => number): WorkflowStep {
  const name = `s${next()}`;
  const retry = (attempts: number) => (attempts > 1 ? { retry: { attempts, backoff: "1ms" } } : {});
  const inner = (steps: readonly Plan[]) => written(steps, next);
  switch (plan.kind) {
    case "command": {
      const when = plan.when === null ? {} : { when: String(plan.when) };
      return { name, kind: "command", argv: [name, String(plan.failures)], ...when, ...retry(plan.attempts) };
    }
    case "fail":
      return { name, kind: "fail", text: `${name} was meant to fail` };
    case "set":
      return { name, kind: "set", data: { [name]: `\${input.word + '${name}'}` } };
    case "switch": {
      const cases = plan.cases.map((steps, at) => ({ when: `${plan.chosen} == ${at}`, steps: inner(steps) }));
      return { name, kind: "switch", cases, ...(plan.other && { default: inner(plan.other) }) };
    }
    case "parallel": {
      const branches = Object.fromEntries(plan.branches.map((steps, at) => [`b${at}`, inner(steps)]));
      return { name, kind: "parallel", branches, join: plan.join, onFailure: plan.collect ? "collect" : "fail_fast" };
    }
    case "foreach": {
      const { concurrency, collect } = plan;
      const items = JSON.stringify(Array.from({ length: plan.items }, (_, at) => at));
      return { name, kind: "foreach", in: items, concurrency, steps: inner(plan.steps), onFailure: collect ? "collect" : "fail_fast" };
    }
    case "try": {
      const steps = inner(plan.steps);
      const parts = { ...(plan.caught && { catch: inner(plan.caught) }), ...(plan.last && { finally: inner(plan.last) }) };
      return { name, kind: "try", steps, ...parts, ...retry(plan.attempts) };
    }
  }
}

type StepResult = { output: Json; error?: undefined } | { error: StepError };
const failed = (name: string, code: string, text: string): StepResult => ({ error: { code, text: `${name} ${text}` } });

/** A second, much simpler implementation of definitions: nothing waits and nothing runs in parallel. */
function interpret(steps: readonly WorkflowStep[], data: Record<string, Json>): StepResult {
  let output: Json = null;
  for (const step of steps) {
    if (step.when === "false") continue;
    const result = expectedOf(step, data);
    if (result.error !== undefined) return result;
    output = result.output;
  }
  return { output };
}

function expectedOf(step: WorkflowStep, data: Record<string, Json>): StepResult {
  const times = step.retry?.attempts ?? 1;
  let result: StepResult = failed(step.name, "never", "was tried");
  for (let attempt = 1; attempt <= times; attempt++) {
    result = expectedOnce(step, { data, attempt });
    if (result.error === undefined) break;
  }
  return result;
}

function expectedOnce(step: WorkflowStep, { data, attempt }: { data: Record<string, Json>; attempt: number }): StepResult {
  switch (step.kind) {
    case "command":
      return attempt <= Number(step.argv[1]) ? failed(step.name, "exit", "failed") : { output: { said: step.name } };
    case "fail":
      return failed(step.name, "failed", "was meant to fail");
    case "set":
      data[step.name] = `hello ${step.name}`;
      return { output: null };
    case "switch": {
      const chosen = step.cases.find(({ when }) => when.split(" == ")[0] === when.split(" == ")[1])?.steps ?? step.default;
      return chosen === undefined ? { output: null } : interpret(chosen, data);
    }
    case "try": {
      let result = interpret(step.steps, data);
      if (result.error !== undefined && step.catch !== undefined) result = interpret(step.catch, data);
      const last: StepResult = step.finally === undefined ? { output: null } : interpret(step.finally, data);
      return last.error === undefined ? result : last;
    }
    case "parallel":
    case "foreach": {
      const lists = step.kind === "parallel" ? Object.values(step.branches) : (JSON.parse(step.in) as number[]).map(() => step.steps);
      const all = lists.map((steps) => interpret(steps, data));
      const { join = "all" } = step;
      const needed = join === "all" ? all.length : join === "any" ? 1 : join;
      const first = all.find(({ error }) => error !== undefined);
      if (all.filter(({ error }) => error === undefined).length < needed) return first ?? failed(step.name, "none", "has nothing");
      const outcomes = all.map((result) => ({
        status: result.error === undefined ? "completed" : "failed",
        output: result.error === undefined ? result.output : null,
        error: result.error ?? null,
      }));
      return { output: step.kind === "foreach" ? outcomes : Object.fromEntries(outcomes.map((each, at) => [`b${at}`, each])) };
    }
    default:
      throw new Error(`nothing is known of ${step.kind}`);
  }
}

const kind = createWorkflowKind({
  evaluator: evaluateHere,
  agent: {},
  workflow: {},
  merge: {},
  command: {
    async perform({ step, attempt, given: input, cancel }) {
      if (cancel === true) return { status: "cancelled" };
      const { argv } = input as { argv: string[] };
      if (attempt <= Number(argv[1])) return { status: "failed", error: { code: "exit", text: `${step.name} failed` } };
      return { status: "completed", output: { said: step.name } };
    },
  },
  clean: async () => ({ sandboxes: 0 }),
});

/** Drives an instance by hand. Work ends in random order, and now and then all state but the log is lost. */
async function driven(definition: WorkflowDefinition, chance: (below: number) => number) {
  const facts = { ...emptyJobFacts(), id: "wf_test" };
  let now = new Date();
  const log: OwnWorkflowEvent[] = [];
  let state: WorkflowState = emptyWorkflow();
  const effectIds: string[] = [];
  const append = (events: readonly NewWorkflowEvent[]) => {
    for (const event of events) {
      const stored = JSON.parse(JSON.stringify({ ...event, version: 1, at: now.toISOString() })) as OwnWorkflowEvent;
      log.push(stored);
      applyToWorkflow(state, stored);
    }
  };
  const about = { digest: "", source: null, root: "workflow/wf_test", depth: 0, model: null };
  append([{ type: "workflow.defined", data: { definition: definition as unknown as Json, input: { word: "hello " }, ...about } }]);
  for (let turns = 0; turns < 5_000; turns++) {
    if (chance(4) === 0) {
      state = emptyWorkflow();
      for (const event of log) applyToWorkflow(state, event);
    }
    const decision = await decideWorkflow(state, { facts, now }, evaluateHere);
    if ("end" in decision)
      return {
        ...decision.end,
        state,
        asked: effectIds,
        output: decision.end.finish === "completed" ? await outputOf(state, facts, evaluateHere) : null,
      };
    if ("append" in decision) append(decision.append);
    else if (decision.effects.length > 0) {
      const effect = decision.effects[chance(decision.effects.length)] as StepEffect;
      const events = await kind.perform(effect, { facts, signal: new AbortController().signal, isCancelled: () => false });
      // The driver dies here: the work is done but not recorded.
      if (chance(5) === 0) continue;
      effectIds.push(effect.id);
      append(events);
    } else now = new Date(Math.max(now.getTime() + 1, decision.waits.due?.getTime() ?? 0));
  }
  throw new Error("it does not come to an end");
}

/** Returns a random generator that gives the same numbers for the same seed. */
function chanceFrom(seed: number): (below: number) => number {
  let at = seed >>> 0;
  return (below) => {
    at = (Math.imul(at, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((at / 2 ** 32) * below);
  };
}

function definitionOf(list: readonly Plan[]): WorkflowDefinition {
  let count = 0;
  return checkDefinition({ name: "random", steps: written(list, () => count++) });
}

const settled = { seed: 41, numRuns: 150 };

test("gives one result if all branches are needed, even if drivers die", async () => {
  await fc.assert(
    fc.asyncProperty(plans(true), fc.nat(), async (list, seed) => {
      const definition = definitionOf(list);
      const data: Record<string, Json> = {};
      const expectedResult = interpret(definition.steps, data);
      const { finish, text, state, output, asked: effectIds } = await driven(definition, chanceFrom(seed));
      expect({ finish, text }).toEqual(
        expectedResult.error === undefined ? { finish: "completed", text: null } : { finish: "failed", text: expectedResult.error.text },
      );
      if (expectedResult.error === undefined && !endsSkipped(definition)) expect(output).toEqual(expectedResult.output);
      expect(state.data).toEqual(data);
      expect(new Set(effectIds).size, "an effect has one outcome").toBe(effectIds.length);
    }),
    settled,
  );
}, 120_000);

test("ends as defined if some branches suffice or one failure ends all", async () => {
  await fc.assert(
    fc.asyncProperty(plans(false), fc.nat(), async (list, seed) => {
      const definition = definitionOf(list);
      const expectedResult = interpret(definition.steps, {});
      const { finish, asked: effectIds } = await driven(definition, chanceFrom(seed));
      expect(finish).toBe(expectedResult.error === undefined ? "completed" : "failed");
      expect(new Set(effectIds).size).toBe(effectIds.length);
    }),
    settled,
  );
}, 120_000);

/** The last step that was not skipped gives the output; if all were skipped, the output is empty. */
const endsSkipped = ({ steps }: WorkflowDefinition): boolean => steps.every(({ when }) => when === "false");
