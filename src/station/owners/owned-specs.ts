import { noDriven } from "../../contract/driven.ts";
import type { OwnerView } from "../../contract/owner.ts";
import { isIdPrefix, oneOf } from "../names/one-of.ts";
import type { SpecVerbs } from "../specs/verbs.ts";
import type { Station } from "../station.ts";
import { decide } from "./decide.ts";
import { isOthers } from "./owned-runs.ts";

export function ownedSpecs({ specs }: Pick<Station, "specs">, { owner, sees }: OwnerView): SpecVerbs {
  const list: SpecVerbs["list"] = async (options = {}) => {
    if (sees === "everything") return await specs.list(options);
    return isOthers(options, owner) ? noDriven : await specs.list({ ...options, owner });
  };
  /** By its id from here on. Who sees everything means their own by a name that several have. */
  const find = async (word: string): Promise<string> => {
    const all = (await list(isIdPrefix("spec", word) ? { id: word } : {})).items.map((each) => ({
      id: each.spec,
      name: each.name,
      owner: each.owner,
    }));
    const found = isIdPrefix("spec", word) ? all.filter(({ id }) => id.startsWith(word)) : all.filter(({ name }) => name === word);
    const own = found.filter((each) => each.owner === owner);
    return oneOf(word, own.length > 0 ? own : found, { what: "spec", listedBy: "caisson spec ls" });
  };
  return decide(specs, {
    create: async (request) => await specs.create(request, { owner }),
    get: async (spec) => await specs.get(await find(spec)),
    list,
    execute: async (spec, request) => await specs.execute(await find(spec), request),
    decide: async (spec, request) => await specs.decide(await find(spec), request),
    edit: async (spec, request) => await specs.edit(await find(spec), request),
    cancel: async (spec, options) => await specs.cancel(await find(spec), options),
    wait: async (spec, options) => await specs.wait(await find(spec), options),
    async *events(spec, options) {
      yield* specs.events(await find(spec), options);
    },
    diff: async (spec, options) => await specs.diff(await find(spec), options),
    export: async (spec, options) => await specs.export(await find(spec), options),
    remove: async (spec) => await specs.remove(await find(spec)),
  });
}
