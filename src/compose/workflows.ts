import type { AnyKind } from "../station/driven/kind.ts";
import type { MergeVerbs } from "../station/merges/verbs.ts";
import type { WorkflowVerbs } from "../station/workflows/verbs.ts";
import type { DrivenParts } from "./driven.ts";

/** What workflows are made of; loaded with the first of them. */
export async function openWorkflows(
  { local, station, driver, settings }: DrivenParts,
  merges: MergeVerbs,
): Promise<{ kind: AnyKind; verbs: WorkflowVerbs } & AsyncDisposable> {
  const [
    { createDrivenThings },
    { createWorkflowKind },
    { createLocalWorkflows, createSubWorkflowWork },
    { createAgentWork },
    { createCommandWork },
    { createMergeWork },
    { createSessionCommands },
    { createExpressionThread },
  ] = await Promise.all([
    import("../station/driven/driven-verbs.ts"),
    import("../station/workflows/workflow-kind.ts"),
    import("../station/workflows/local-workflows.ts"),
    import("../station/workflows/agent-work.ts"),
    import("../station/workflows/command-work.ts"),
    import("../station/workflows/merge-work.ts"),
    import("../station/workflows/session-commands.ts"),
    import("../station/workflows/expression-thread.ts"),
  ]);
  const expressions = createExpressionThread();
  const kind = createWorkflowKind({
    evaluator: expressions.evaluate,
    agent: createAgentWork(station),
    workflow: createSubWorkflowWork(() => things, expressions.evaluate),
    merge: createMergeWork({ merges, sessions: station.sessions }),
    ...createCommandWork({ ...station, inSession: createSessionCommands({ ...local, runtime: local.viewing.runtime }) }),
  });
  const things = createDrivenThings(kind, { ...local, driver, openPerOwnerMax: settings.config.station.jobsPerOwnerMax });
  return {
    kind,
    verbs: createLocalWorkflows(things, expressions),
    [Symbol.asyncDispose]: () => expressions[Symbol.asyncDispose](),
  };
}
