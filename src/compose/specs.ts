import { CaissonError } from "../contract/error.ts";
import type { SpecMerges } from "../station/specs/spec-effects.ts";
import type { SpecKind } from "../station/specs/spec-kind.ts";
import type { SpecVerbs } from "../station/specs/verbs.ts";
import type { DrivenParts } from "./driven.ts";

export async function openSpecs({ local, station, driver }: DrivenParts): Promise<{ kind: SpecKind; verbs: SpecVerbs }> {
  const [{ specKind }, { createLocalSpecs }, { createDrivenThings }] = await Promise.all([
    import("../station/specs/spec-kind.ts"),
    import("../station/specs/local-specs.ts"),
    import("../station/driven/driven-verbs.ts"),
  ]);
  const kind = specKind({ runs: station.runs, sessions: station.sessions, merges: noMerges, now: Date.now });
  const things = createDrivenThings(kind, { log: local.log, driver, crashpoint: local.crashpoint });
  return { kind, verbs: createLocalSpecs({ things, log: local.log, runs: station.runs, claimName: local.claimName, canMerge: false }) };
}

const noMerges: SpecMerges = {
  async start() {
    throw new CaissonError("unsupported", "this station cannot merge sessions");
  },
  result: async () => ({ session: null, text: "" }),
  cancel: async () => undefined,
  streamOf: (merge) => `merge/${merge}`,
};
