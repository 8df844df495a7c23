import { createHash } from "node:crypto";
import { idFrom } from "../lib/new-id.ts";
import type { MergeVerbs } from "../station/merges/verbs.ts";
import type { SpecMerges } from "../station/specs/spec-effects.ts";
import type { SpecKind } from "../station/specs/spec-kind.ts";
import type { SpecVerbs } from "../station/specs/verbs.ts";
import type { DrivenParts } from "./driven.ts";

export async function openSpecs(
  { local, station, driver, settings }: DrivenParts,
  merges: MergeVerbs,
): Promise<{ kind: SpecKind; verbs: SpecVerbs }> {
  const [{ specKind }, { createLocalSpecs }, { createDrivenThings }] = await Promise.all([
    import("../station/specs/spec-kind.ts"),
    import("../station/specs/local-specs.ts"),
    import("../station/driven/driven-verbs.ts"),
  ]);
  const kind = specKind({ runs: station.runs, sessions: station.sessions, merges: mergesOf(merges), now: Date.now });
  const { log, crashpoint } = local;
  const things = createDrivenThings(kind, { log, driver, crashpoint, openPerOwnerMax: settings.config.station.jobsPerOwnerMax });
  return { kind, verbs: createLocalSpecs({ things, log: local.log, runs: station.runs, claimName: local.claimName }) };
}

/** A merge has the id that its key gives, so that it is found again. */
function mergesOf(merges: MergeVerbs): SpecMerges {
  return {
    async start({ key, sessions, owner, parent, runs: { model } }) {
      const id = idFrom("mrg", createHash("sha256").update(key).digest());
      const request = { sessions: [...sessions], conflicts: "agent" as const, ...(model !== undefined && { model }) };
      return (await merges.start(request, { owner, id, parent })).id;
    },
    async result(merge) {
      const { result, text } = await merges.get(merge);
      return { session: result, text: text ?? "" };
    },
    cancel: async (merge, { by }) => void (await merges.cancel(merge, { by })),
    streamOf: (merge) => `merge/${merge}`,
  };
}
