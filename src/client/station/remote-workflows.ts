import { CaissonError } from "../../contract/error.ts";
import type { WorkflowVerbs } from "../../station/workflows/verbs.ts";
import type { Client } from "../connect.ts";

const PAGE_MAX = 1000;

/** Workflows that the station drives. Who does something is said by the token. */
export function remoteWorkflows({ workflows }: Pick<Client, "workflows">): WorkflowVerbs {
  return {
    validate: (definition) => workflows.validate(definition as never),
    start: (request) => workflows.start(request),
    get: (word) => workflows.get(word),
    list: ({ parent, limit = PAGE_MAX, ...rest } = {}) =>
      workflows.list({ ...rest, limit: Math.min(limit, PAGE_MAX), ...(parent !== undefined && { parent: parent ?? "none" }) }),
    events: (word, options = {}) => workflows.events(word, options) as ReturnType<WorkflowVerbs["events"]>,
    async wait(word, options = {}) {
      try {
        return await workflows.wait(word, options);
      } catch (error) {
        if (options.signal?.aborted) throw new CaissonError("cancelled", `waiting for ${word} was given up`);
        throw error;
      }
    },
    cancel: (word, { text }) => workflows.cancel(word, text === undefined ? {} : { text }),
    pause: (word, { text }) => workflows.pause(word, text === undefined ? {} : { text }),
    resume: (word) => workflows.resume(word),
    signal: (word, { by: _, ...signal }) => workflows.signal(word, signal),
    approve: (word, { by: _, ...answer }) => workflows.approve(word, answer),
    retry: (word) => workflows.retry(word),
    remove: (word) => workflows.remove(word),
  };
}
