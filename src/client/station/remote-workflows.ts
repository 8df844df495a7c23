import type { WorkflowVerbs } from "../../station/workflows/verbs.ts";
import type { Client } from "../connect.ts";
import { remoteDriven } from "./remote-driven.ts";

/** Workflows that the station drives. Who does something is said by the token. */
export function remoteWorkflows({ workflows }: Pick<Client, "workflows">): WorkflowVerbs {
  return {
    ...remoteDriven(workflows),
    validate: (definition) => workflows.validate(definition as never),
    start: (request) => workflows.start(request),
    signal: (word, { by: _, ...signal }) => workflows.signal(word, signal),
    approve: (word, { by: _, ...answer }) => workflows.approve(word, answer),
    retry: (word) => workflows.retry(word),
  };
}
