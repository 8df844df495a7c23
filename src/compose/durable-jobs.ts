import { CaissonError } from "../contract/error/error.ts";
import { foundOrNull } from "../contract/error/found-or-null.ts";
import { once } from "../lib/once.ts";
import type { DriverOptions } from "../station/durable/driver.ts";
import type { BestVerbs } from "../verbs/bests.ts";
import type { MergeVerbs } from "../verbs/merges.ts";
import type { RunVerbs } from "../verbs/runs.ts";
import type { ShipVerbs } from "../verbs/ships.ts";
import type { SpecVerbs } from "../verbs/specs.ts";
import type { WorkflowVerbs } from "../verbs/workflows.ts";
import type { OpenLocal } from "./groups.ts";
import { lazyGroup } from "./lazy-verbs.ts";
import type { JobParts, JobSettings } from "./open-jobs.ts";

/** The durable jobs of this process. Opened with the first call. */
export function composeJobs(options: JobSettings & { local: OpenLocal; station: JobParts["station"] }) {
  const open = once(async () => {
    const [{ createDriver }, { openJobs }, local] = await Promise.all([
      import("../station/durable/driver.ts"),
      import("./open-jobs.ts"),
      options.local(),
    ]);
    const beginning: JobParts["driver"] = { drive: (stream) => driver.drive(stream) };
    const { specs, ships, merges, bests, workflows } = openJobs({ local, station: options.station, driver: beginning, settings: options });
    let onDefect = (error: unknown) => options.say(`a durable job is stuck: ${(error as Error).message}`);
    const driver = createDriver({
      ...local.core,
      kinds: [specs.kind, ships.kind, merges.kind, bests.kind, workflows.kind],
      runs: childRuns(options.station.runs),
      onDefect: (error) => onDefect(error),
    });
    return {
      async close() {
        await driver[Symbol.asyncDispose]();
        await workflows[Symbol.asyncDispose]();
      },
      specs: specs.verbs,
      ships: ships.verbs,
      merges: merges.verbs,
      bests: bests.verbs,
      workflows: workflows.verbs,
      async serve(report: (error: unknown) => void) {
        onDefect = report;
        await driver.serve();
      },
    };
  });
  return {
    specs: lazyGroup<SpecVerbs>("specs", async () => (await open()).specs),
    ships: lazyGroup<ShipVerbs>("ships", async () => (await open()).ships),
    merges: lazyGroup<MergeVerbs>("merges", async () => (await open()).merges),
    bests: lazyGroup<BestVerbs>("bests", async () => (await open()).bests),
    workflows: lazyGroup<WorkflowVerbs>("workflows", async () => (await open()).workflows),
    /** Drives all durable jobs, as a station does, until `close`. */
    serve: async (onDefect: (error: unknown) => void) => await (await open()).serve(onDefect),
    close: async () => await (await open.opened())?.close(),
  };
}

/** Adapts runs as children of durable jobs. */
function childRuns(runs: RunVerbs): DriverOptions["runs"] {
  return {
    async isOver(run) {
      const view = await foundOrNull(runs.get(run));
      return view === null || view.status === "ended";
    },
    async tend(run) {
      const { status, paused } = await runs.get(run);
      if (["user", "forked", "rewound"].includes(paused?.why ?? "") || (status !== "interrupted" && status !== "created")) return;
      try {
        await runs.resume(run, { by: "station", reopens: false });
      } catch (error) {
        // Another process is driving it, or it has just ended.
        if (!(error instanceof CaissonError) || error.code !== "conflict") throw error;
      }
    },
  };
}
