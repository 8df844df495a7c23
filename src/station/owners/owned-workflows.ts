import type { OwnerView } from "../../contract/owner.ts";
import { ownedDriven } from "../driven/owned-driven.ts";
import type { Station } from "../station.ts";
import type { WorkflowVerbs } from "../workflows/verbs.ts";
import { workflowKind } from "../workflows/workflow-names.ts";
import { decide } from "./decide.ts";

export function ownedWorkflows({ workflows }: Pick<Station, "workflows">, view: OwnerView): WorkflowVerbs {
  const { find, ...shared } = ownedDriven(workflows, view, workflowKind);
  return decide(workflows, {
    ...shared,
    validate: "shared",
    start: async (request, options = {}) => await workflows.start(request, { ...options, owner: view.owner }),
    signal: async (workflow, signal) => await workflows.signal(await find(workflow), signal),
    approve: async (workflow, answer) => await workflows.approve(await find(workflow), answer),
    retry: async (workflow, options) => await workflows.retry(await find(workflow), options),
  });
}
