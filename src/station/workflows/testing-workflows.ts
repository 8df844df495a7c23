import { noCrash } from "../../lib/crashpoint.ts";
import type { Log } from "../../log/log.ts";
import type { WorkflowVerbs } from "../../verbs/workflows.ts";
import { evaluateHere } from "../../workflow/expressions/evaluate.ts";
import type { StepEffect } from "../../workflow/turn.ts";
import { readDefinition } from "../../workflow/validate.ts";
import type { Driver } from "../durable/driver.ts";
import { createJobs } from "../durable/durable-verbs.ts";
import { createTestDriver } from "../durable/testing-durable.ts";
import { createLocalWorkflows, createSubWorkflowWork, type WorkflowJobs } from "./local-workflows.ts";
import { createWorkflowKind, type StepOutcome } from "./workflow-kind.ts";

/** Workflows on a log, for tests: a function performs their commands, and there are no agents. */
export interface TestWorkflows extends AsyncDisposable {
  verbs: WorkflowVerbs;
  jobs: WorkflowJobs;
  driver: Driver & { defects: unknown[] };
  /** The ids of the performed effects. */
  asked: string[];
}

export function createTestWorkflows(options: {
  log: Log;
  pid?: number;
  gone?: ReadonlySet<string>;
  now?: () => Date;
  command: (effect: StepEffect & { argv: string[] }, signal: AbortSignal) => Promise<StepOutcome> | StepOutcome;
}): TestWorkflows {
  const effectIds: string[] = [];
  const kind = createWorkflowKind({
    evaluator: evaluateHere,
    agent: {},
    merge: {},
    workflow: createSubWorkflowWork(() => jobs, evaluateHere),
    command: {
      async perform(effect, { signal }) {
        effectIds.push(effect.id);
        return await options.command({ ...effect, argv: (effect.given as { argv: string[] }).argv }, signal);
      },
    },
    clean: async () => ({ sandboxes: 1 }),
  });
  const { log, now, gone: deadOwners } = options;
  const driver = createTestDriver({
    log,
    kinds: [kind],
    pid: options.pid ?? 1,
    ...(now && { now }),
    ...(deadOwners && { gone: deadOwners }),
  });
  const jobs = createJobs(kind, { log, driver, crashpoint: noCrash });
  return {
    jobs,
    verbs: createLocalWorkflows(jobs, { evaluate: evaluateHere, check: async (definition) => readDefinition(definition).problems }),
    driver,
    asked: effectIds,
    [Symbol.asyncDispose]: async () => await driver[Symbol.asyncDispose](),
  };
}
