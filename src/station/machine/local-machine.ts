import type {
  AskSnapshotUsage,
  ModelList,
  RuntimeChoice,
  SnapshotUsages,
  SuiteSubject,
  TaskNeeds,
} from "../../contract/machine/machine-verbs.ts";
import { defined } from "../../lib/defined.ts";
import { ignore } from "../../lib/failures.ts";
import { chooseRuntime } from "../../sandbox/choose-runtime.ts";
import { createDiskShares, type DiskSharesOptions } from "../../sandbox/disk-shares.ts";
import type { Resolver } from "../../sandbox/resolver.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import type { RuntimeSet } from "../../sandbox/runtime-set.ts";
import type { AttackedStation } from "../../suites/station-attack/station-claim.ts";
import type { MachineVerbs } from "../../verbs/machine.ts";
import { type DoctorOptions, examine, hasProgram } from "./doctor.ts";
import { type FileStores, type PrunedStation, pruneMachine } from "./prune.ts";
import { statsOf } from "./stats.ts";
import { usageOf } from "./usage.ts";

export interface LocalMachineOptions
  extends Pick<DoctorOptions, "version" | "home" | "path" | "cwd" | "stateDir" | "hiding" | "examineModels"> {
  guestPath: string;
  /** Starts a separate station to attack, isolated from this one. */
  startAttackedStation: () => Promise<AttackedStation & AsyncDisposable>;
  listModels: (check: string | undefined) => Promise<ModelList>;
  /** The verbs of other groups. */
  station: PrunedStation;
  /** Returns the stored files that can be removed when nothing uses them, given the runtime that stores templates. */
  unusedFiles: (templates: Runtime | null) => Promise<FileStores>;
  snapshotUsage: (request: AskSnapshotUsage) => Promise<SnapshotUsages>;
  /** The reserve, and the share of one owner. */
  disk: Omit<DiskSharesOptions, "stateDir">;
  runtimes: RuntimeSet;
  resolver: Resolver;
  /** The runtime for a suite that names none. */
  defaultRuntime: string;
  defaultImage: string | undefined;
}

/** Creates the verbs of the machine that this process runs on. */
export function createLocalMachine(options: LocalMachineOptions): MachineVerbs {
  const subject = async ({ runtime, image }: SuiteSubject = {}): Promise<{ runtime: Runtime; spec: object }> => {
    const reference = image ?? options.defaultImage;
    return {
      runtime: await options.resolver.resolve(runtime ?? options.defaultRuntime),
      spec: reference === undefined ? {} : { template: { kind: "image", reference } },
    };
  };
  /** With other runtimes, the user owns every file in the state folder. */
  const filesRuntime = async () =>
    options.runtimes.names.includes("oci") ? ((await ignore(options.runtimes.get("oci"), "it cannot be used here")) ?? null) : null;
  const machine: MachineVerbs = {
    doctor: (request = {}) => examine({ ...options, ...defined(request) }),
    choose: async (needs = {}) => chooseFrom(await machine.doctor(), needs, options.path),
    models: ({ check } = {}) => options.listModels(check),
    async *attack({ of, ...rest } = {}) {
      const { attackVerdicts, stationVerdicts } = await import("./run-suites.ts");
      if (of !== "station") yield* attackVerdicts(await subject(rest), options);
      else yield* stationVerdicts(options);
    },
    async *conformance(request) {
      const { conformanceResults } = await import("./run-suites.ts");
      yield* conformanceResults(await subject(request));
    },
    stats: () => statsOf(options),
    usage: () => usageOf(options.stateDir),
    snapshotUsage: async (request = {}) => await options.snapshotUsage(request),
    prune: async (request) => pruneMachine(request, { ...options, files: await options.unusedFiles(await filesRuntime()) }),
    async *backup({ compressed = false } = {}) {
      const { backUp } = await import("./backup.ts");
      const disk = createDiskShares({ ...options.disk, stateDir: options.stateDir });
      yield* backUp({ ...options, disk, compressed, runtime: await filesRuntime(), sandboxes: options.station.sandboxes });
    },
    async restore(file) {
      const { restore } = await import("./backup.ts");
      return restore(file, { ...options, runtime: await filesRuntime() });
    },
    find: async (word) => (await import("../names/resolve-id.ts")).resolveId(word, options.station),
  };
  return machine;
}

function chooseFrom(report: Awaited<ReturnType<MachineVerbs["doctor"]>>, needs: TaskNeeds, path: string): RuntimeChoice | null {
  const available = report.runtimes.flatMap(({ name, usable, capabilities, startMs }) =>
    usable && capabilities !== null ? [{ name, capabilities, startMs }] : [],
  );
  return chooseRuntime(needs, { available, hasProgram: (program) => hasProgram(path, program) });
}
