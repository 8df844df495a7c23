import type { RuntimeSet } from "../sandbox/runtime-set.ts";
import type { LocalSandboxes } from "../station/sandboxes/local-sandboxes.ts";
import type { Station } from "../station/station.ts";
import { lazyVerbs } from "./lazy-verbs.ts";
import type { LocalParts } from "./local-station.ts";

export interface StationParts extends LocalParts {
  runtimes: RuntimeSet;
}

/** The station of this machine and state folder: each group of verbs is loaded with its first call. */
export function composeStation(parts: StationParts): Pick<Station, "sandboxes"> & { sandboxes: LocalSandboxes } {
  const { stateDir, runtimes, resolver, config } = parts;
  const sandboxes = lazyVerbs<LocalSandboxes>(
    {
      create: "answer",
      hold: "answer",
      get: "answer",
      list: "answer",
      stats: "answer",
      pause: "answer",
      resume: "answer",
      snapshot: "answer",
      fork: "answer",
      remove: "answer",
      sweep: "answer",
      snapshots: "answer",
      removeSnapshot: "answer",
      removeOwn: "answer",
    },
    async () => {
      const { createLocalSandboxes } = await import("../station/sandboxes/local-sandboxes.ts");
      return createLocalSandboxes({
        stateDir,
        runtimes,
        resolver,
        defaultRuntime: config.runtime,
        async finishRuns(ofRuns) {
          const [{ openLocalStation }, { finishRuns }] = await Promise.all([
            import("./local-station.ts"),
            import("../station/runs/finish-runs.ts"),
          ]);
          await using local = openLocalStation(parts);
          await finishRuns({ ...local, runtimes: ofRuns });
        },
      });
    },
  );
  return { sandboxes };
}
