import type { ModelList, RuntimeChoice, SuiteSubject, TaskNeeds } from "../../contract/machine-verbs.ts";
import type { DiskSharesOptions } from "../../sandbox/disk-shares.ts";
import type { Resolver } from "../../sandbox/resolver.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import type { RuntimeSet } from "../../sandbox/runtime-set.ts";
import type { AttackedStation } from "../../suites/station/station-claim.ts";
import { type DoctorOptions, examine, hasProgram } from "./doctor.ts";
import type { PrunedStation } from "./prune.ts";
import type { MachineVerbs } from "./verbs.ts";

export interface LocalMachineOptions
  extends Pick<DoctorOptions, "version" | "home" | "path" | "cwd" | "stateDir" | "hiding" | "examineModels"> {
  guestPath: string;
  /** Starts a station that can be attacked, apart from everything of this one. */
  startAttackedStation: () => Promise<AttackedStation & AsyncDisposable>;
  listModels: (check: string | undefined) => Promise<ModelList>;
  /** The other verbs. */
  station: PrunedStation;
  /** What stays free on the disk. */
  disk: Omit<DiskSharesOptions, "stateDir">;
  runtimes: RuntimeSet;
  resolver: Resolver;
  /** What is taken when a suite is to run on none in particular. */
  defaultRuntime: string;
  defaultImage: string | undefined;
}

/** The machine that this process runs on. */
export function createLocalMachine(options: LocalMachineOptions): MachineVerbs {
  const subject = async ({ runtime, image }: SuiteSubject = {}): Promise<{ runtime: Runtime; spec: object }> => {
    const reference = image ?? options.defaultImage;
    return {
      runtime: await options.resolver.resolve(runtime ?? options.defaultRuntime),
      spec: reference === undefined ? {} : { template: { kind: "image", reference } },
    };
  };
  /** Sandboxes of other runtimes leave nothing in the state folder that is not the user's own. */
  const filesRuntime = async () => (options.runtimes.names.includes("oci") ? await options.runtimes.get("oci").catch(() => null) : null);
  const machine: MachineVerbs = {
    doctor: (asked) => examine({ ...options, ...asked }),
    choose: async (needs) => chooseFrom(await machine.doctor(), needs, options.path),
    models: ({ check } = {}) => options.listModels(check),
    async *attack({ of, ...asked } = {}) {
      const { attackVerdicts, stationVerdicts } = await import("./run-suites.ts");
      if (of !== "station") yield* attackVerdicts(await subject(asked), options);
      else yield* stationVerdicts(options);
    },
    async *conformance(asked) {
      const { conformanceResults } = await import("./run-suites.ts");
      yield* conformanceResults(await subject(asked));
    },
    async stats() {
      const { statsOf } = await import("./stats.ts");
      return statsOf(options);
    },
    async usage() {
      const { usageOf } = await import("./usage.ts");
      return usageOf(options.stateDir);
    },
    async prune(request) {
      const { pruneMachine } = await import("./prune.ts");
      return pruneMachine(request, options);
    },
    async *backup({ compressed = false } = {}) {
      const [{ backUp }, { createDiskShares }] = await Promise.all([import("./backup.ts"), import("../../sandbox/disk-shares.ts")]);
      const disk = createDiskShares({ ...options.disk, stateDir: options.stateDir });
      yield* backUp({ ...options, disk, compressed, runtime: await filesRuntime(), sandboxes: options.station.sandboxes });
    },
    async restore(file) {
      const { restore } = await import("./backup.ts");
      return restore(file, { ...options, runtime: await filesRuntime() });
    },
    async find(word) {
      const { findThing } = await import("./find-thing.ts");
      return findThing(word, options.station);
    },
  };
  return machine;
}

async function chooseFrom(
  report: Awaited<ReturnType<MachineVerbs["doctor"]>>,
  needs: TaskNeeds,
  path: string,
): Promise<RuntimeChoice | null> {
  const { chooseRuntime } = await import("../../sandbox/choose-runtime.ts");
  const available = report.runtimes.flatMap(({ name, usable, capabilities, startMs }) =>
    usable && capabilities !== null ? [{ name, capabilities, startMs }] : [],
  );
  return chooseRuntime(needs, { available, hasProgram: (program) => hasProgram(path, program) });
}
