import type { AnyKind } from "../station/driven/kind.ts";
import type { MergeVerbs } from "../station/merges/verbs.ts";
import type { WorkflowVerbs } from "../station/workflows/verbs.ts";
import type { DrivenParts } from "./driven.ts";

/** What workflows are made of; loaded with the first of them. */
export async function openWorkflows(
  { local, station, driver }: DrivenParts,
  merges: MergeVerbs,
): Promise<{ kind: AnyKind; verbs: WorkflowVerbs }> {
  const [
    { createDrivenThings },
    { createWorkflowKind },
    { createLocalWorkflows, createSubWorkflowWork },
    { createAgentWork },
    { createCommandWork },
    { createMergeWork },
    { createSessionCommands },
  ] = await Promise.all([
    import("../station/driven/driven-verbs.ts"),
    import("../station/workflows/workflow-kind.ts"),
    import("../station/workflows/local-workflows.ts"),
    import("../station/workflows/agent-work.ts"),
    import("../station/workflows/command-work.ts"),
    import("../station/workflows/merge-work.ts"),
    import("../station/workflows/session-commands.ts"),
  ]);
  const kind = createWorkflowKind({
    agent: createAgentWork(station),
    workflow: createSubWorkflowWork(() => things),
    merge: createMergeWork({ merges, sessions: station.sessions }),
    ...createCommandWork({ ...station, inSession: createSessionCommands({ ...local, runtime: local.viewing.runtime }) }),
  });
  const things = createDrivenThings(kind, { ...local, driver });
  return { kind, verbs: createLocalWorkflows(things) };
}
