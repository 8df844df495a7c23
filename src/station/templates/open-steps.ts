import type { RuntimeSet } from "../../sandbox/runtime-set.ts";
import { createTemplateStore } from "../built-templates/template-store.ts";
import { createStepStore, type StepStore } from "./steps/step-store.ts";

/** Opens the build cache of a state folder. */
export function openSteps({ stateDir, runtimes }: { stateDir: string; runtimes: RuntimeSet }): StepStore {
  return createStepStore({ stateDir, runtimes, templates: createTemplateStore({ stateDir }) });
}
