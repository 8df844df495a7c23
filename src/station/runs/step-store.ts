import type { StepFiles, StoreStep } from "../../agent/end-step.ts";
import type { Journal } from "../../agent/journal.ts";
import { CaissonError } from "../../contract/error/error.ts";
import type { SandboxId } from "../../contract/ids.ts";
import type { Crashpoint } from "../../lib/crashpoint.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import type { SessionStore } from "../../workspace/sessions.ts";
import { storeStep } from "../sessions/stored-points.ts";

/** Returns a function that stores the files of a run's session after each of its steps. */
export function createStepStore(
  journal: Journal,
  { session: { id }, runtime }: { session: { id: string }; runtime: Runtime },
  { sessions, crashpoint }: { sessions: SessionStore; crashpoint: Crashpoint },
): StoreStep {
  let last: StepFiles | null = null;
  return async (step, { mayDiffer }) => {
    const session = await sessions.get(id);
    const { run, sandbox } = journal.state;
    const where = { run, step, unchanged: mayDiffer ? null : (last?.point ?? null) };
    crashpoint("step.point:before");
    // A sandbox that has died no longer writes.
    const files = await storeStep(
      session,
      { ...where, sandbox: (sandbox?.id as SandboxId | undefined) ?? null },
      { sessions, runtime },
    ).catch(async (error: unknown) => {
      if (!(error instanceof CaissonError) || error.code !== "not_found") throw error;
      return await storeStep(session, { ...where, sandbox: null }, { sessions, runtime });
    });
    crashpoint("step.point:after");
    last = files;
    return files;
  };
}
