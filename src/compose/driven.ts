import { CaissonError } from "../contract/error.ts";
import type { Driver, DriverOptions } from "../station/driven/driver.ts";
import type { AnyKind } from "../station/driven/kind.ts";
import type { LocalStation } from "../station/local-station.ts";
import type { MergeVerbs } from "../station/merges/verbs.ts";
import type { RunVerbs } from "../station/runs/verbs.ts";
import type { ShipVerbs } from "../station/ships/verbs.ts";
import type { SpecVerbs } from "../station/specs/verbs.ts";
import type { Station } from "../station/station.ts";
import type { WorkflowVerbs } from "../station/workflows/verbs.ts";
import { lazyVerbs } from "./lazy-verbs.ts";
import type { LocalParts } from "./local-station.ts";
import { mergeKinds, shipKinds, specKinds, workflowKinds } from "./verb-kinds.ts";

/** What kinds of driven things are made of. */
export interface DrivenParts {
  local: LocalStation;
  /** The other verbs, as the machine's own user has them. */
  station: Pick<Station, "runs" | "sessions" | "sandboxes" | "agents">;
  /** Of what a kind begins itself, such as a part of a thing. */
  driver: Pick<Driver, "drive">;
  settings: DrivenSettings;
}

/** What they need of the environment and the configuration. */
type DrivenSettings = Pick<LocalParts, "config" | "stateDir" | "path" | "say">;

/** The things of this process that are driven. Nothing is opened before one of them is asked for. */
export function composeDriven(options: DrivenSettings & { local: () => Promise<LocalStation>; station: DrivenParts["station"] }) {
  let opening: ReturnType<typeof open> | undefined;
  const open = async () => {
    const [{ createDriver }, local] = await Promise.all([import("../station/driven/driver.ts"), options.local()]);
    const beginning: DrivenParts["driver"] = { drive: (stream) => driver.drive(stream) };
    const parts: DrivenParts = { local, station: options.station, driver: beginning, settings: options };
    const merges = await (await import("./merges.ts")).openMerges(parts);
    const specs = await (await import("./specs.ts")).openSpecs(parts, merges.verbs);
    const ships = await (await import("./ships.ts")).openShips(parts, specs.verbs);
    const workflows = await (await import("./workflows.ts")).openWorkflows(parts, merges.verbs);
    const kinds: AnyKind[] = [specs.kind, ships.kind, merges.kind, workflows.kind];
    let onDefect = (error: unknown) => options.say(`something that is driven stands still: ${(error as Error).message}`);
    const driver = createDriver({ ...local, kinds, runs: childRuns(options.station.runs), onDefect: (error) => onDefect(error) });
    return {
      async close() {
        await driver[Symbol.asyncDispose]();
        await workflows[Symbol.asyncDispose]();
      },
      specs: specs.verbs,
      ships: ships.verbs,
      merges: merges.verbs,
      workflows: workflows.verbs,
      async serve(report: (error: unknown) => void) {
        onDefect = report;
        await driver.serve();
      },
    };
  };
  const opened = () => {
    opening ??= open();
    return opening;
  };
  return {
    specs: lazyVerbs<SpecVerbs>(specKinds, async () => (await opened()).specs),
    ships: lazyVerbs<ShipVerbs>(shipKinds, async () => (await opened()).ships),
    merges: lazyVerbs<MergeVerbs>(mergeKinds, async () => (await opened()).merges),
    workflows: lazyVerbs<WorkflowVerbs>(workflowKinds, async () => (await opened()).workflows),
    /** Drives everything there is, as a station does. It ends with `close`. */
    serve: async (onDefect: (error: unknown) => void) => await (await opened()).serve(onDefect),
    close: async () => await (await opening?.catch(() => undefined))?.close(),
  };
}

/** Runs as children of driven things. */
function childRuns(runs: RunVerbs): DriverOptions["runs"] {
  return {
    async isOver(run) {
      try {
        return (await runs.get(run)).status === "ended";
      } catch (error) {
        if (error instanceof CaissonError && error.code === "not_found") return true;
        throw error;
      }
    },
    async tend(run) {
      const { status, paused } = await runs.get(run);
      if (paused?.why === "user" || (status !== "interrupted" && status !== "created")) return;
      try {
        await runs.resume(run, { by: "station", reopens: false });
      } catch (error) {
        // Somebody else drives it after all, or it has just ended.
        if (!(error instanceof CaissonError) || error.code !== "conflict") throw error;
      }
    },
  };
}
