import type { Crashpoint } from "../../lib/crashpoint.ts";
import type { RuntimeSet } from "../../sandbox/runtime-set.ts";
import { createTemplateStore } from "../built-templates/template-store.ts";
import { createStepStore, type StepStore } from "./steps/step-store.ts";

interface OpenStepsOptions {
  stateDir: string;
  runtimes: RuntimeSet;
  crashpoint?: Crashpoint | undefined;
}

/** Opens the build cache of a state folder. */
export function openSteps({ stateDir, runtimes, crashpoint }: OpenStepsOptions): StepStore {
  return createStepStore({ stateDir, runtimes, templates: createTemplateStore({ stateDir }), crashpoint });
}
