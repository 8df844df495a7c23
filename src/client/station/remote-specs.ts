import { CaissonError } from "../../contract/error.ts";
import type { SpecVerbs } from "../../station/specs/verbs.ts";
import type { Client } from "../connect.ts";

/** Who does something is said by the token. */
export function remoteSpecs({ specs }: Pick<Client, "specs">): SpecVerbs {
  return {
    create: (request) => specs.create(request),
    get: (spec) => specs.get(spec),
    list: (options) => specs.list(options),
    execute: (spec, { by: _, ...request }) => specs.execute(spec, request),
    decide: (spec, { by: _, ...request }) => specs.decide(spec, request),
    edit: (spec, { by: _, ...request }) => specs.edit(spec, request),
    cancel: (spec) => specs.cancel(spec),
    async wait(spec, { signal } = {}) {
      try {
        return await specs.wait(spec, signal === undefined ? {} : { signal });
      } catch (error) {
        if (signal?.aborted) throw new CaissonError("cancelled", `waiting for ${spec} was given up`);
        throw error;
      }
    },
    events: (spec, options) => specs.events(spec, options),
    diff: (spec, options) => specs.diff(spec, options),
    export: (spec, options) => specs.export(spec, options),
    remove: (spec) => specs.remove(spec),
  };
}
