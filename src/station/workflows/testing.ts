import type { Log } from "../../log/log.ts";
import { evaluateHere } from "../../workflow/expressions/evaluate.ts";
import type { StepEffect } from "../../workflow/turn.ts";
import { readDefinition } from "../../workflow/validate.ts";
import { noCrash } from "../crashpoint.ts";
import { createDrivenThings } from "../driven/driven-verbs.ts";
import type { Driver } from "../driven/driver.ts";
import { createTestDriver } from "../driven/testing.ts";
import { createLocalWorkflows, createSubWorkflowWork, type WorkflowThings } from "./local-workflows.ts";
import type { WorkflowVerbs } from "./verbs.ts";
import { createWorkflowKind, type StepOutcome } from "./workflow-kind.ts";

/** Workflows on a log, whose commands are done by a function, and agents not at all; for tests. */
export interface TestWorkflows extends AsyncDisposable {
  verbs: WorkflowVerbs;
  things: WorkflowThings;
  driver: Driver & { defects: unknown[] };
  /** The effects that were asked for, by their ids. */
  asked: string[];
}

export function createTestWorkflows(options: {
  log: Log;
  pid?: number;
  gone?: ReadonlySet<string>;
  now?: () => Date;
  command: (effect: StepEffect & { argv: string[] }, signal: AbortSignal) => Promise<StepOutcome> | StepOutcome;
}): TestWorkflows {
  const asked: string[] = [];
  const kind = createWorkflowKind({
    evaluator: evaluateHere,
    agent: {},
    merge: {},
    workflow: createSubWorkflowWork(() => things, evaluateHere),
    command: {
      async perform(effect, { signal }) {
        asked.push(effect.id);
        return await options.command({ ...effect, argv: (effect.given as { argv: string[] }).argv }, signal);
      },
    },
    clean: async () => 1,
  });
  const { log, now, gone } = options;
  const driver = createTestDriver({ log, kinds: [kind], pid: options.pid ?? 1, ...(now && { now }), ...(gone && { gone }) });
  const things = createDrivenThings(kind, { log, driver, crashpoint: noCrash });
  return {
    things,
    verbs: createLocalWorkflows(things, { evaluate: evaluateHere, check: async (definition) => readDefinition(definition).problems }),
    driver,
    asked,
    [Symbol.asyncDispose]: async () => await driver[Symbol.asyncDispose](),
  };
}
