import type { HealthVerbs } from "../station/health/verbs.ts";
import type { LocalStation } from "../station/local-station.ts";
import { lazyVerbs } from "./lazy-verbs.ts";
import type { StationParts } from "./station.ts";

export function composeHealth({ stateDir, config }: StationParts, local: () => Promise<LocalStation>): HealthVerbs {
  return lazyVerbs<HealthVerbs>({ list: "answer", incidents: "answer", incident: "answer" }, async () => {
    const [{ createLocalHealth }, { createStore }] = await Promise.all([
      import("../station/health/local-health.ts"),
      import("../sandbox/store.ts"),
    ]);
    return createLocalHealth({ stateDir, store: createStore({ stateDir }), log: async () => (await local()).log, settings: config.health });
  });
}
