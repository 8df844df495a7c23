import { defaultLimits } from "../../../contract/defaults/default-limits.ts";
import { gitSettingsFile } from "../../../sandbox/git-settings.ts";
import { tokenName } from "../../../sandbox/guest-token.ts";
import { makeInsideFolder } from "../../../sandbox/inside-folder.ts";
import { WORKSPACE } from "../../../sandbox/path.ts";
import { viewState } from "../../../sandbox/state-places.ts";
import type { SandboxRecord } from "../../../sandbox/store.ts";
import { cgroupEntrances, cgroupViews } from "../cgroups/cgroup.ts";
import type { OciDetails } from "../details.ts";
import type { OciBinary } from "../discover.ts";
import { identityOf, layerRange } from "../identity/id-ranges.ts";
import type { Identity } from "../identity/identity.ts";
import { diskRecords, liveDisk, noteDiskParts } from "../layers/disk.ts";
import { homeRecords } from "../layers/home.ts";
import { layerOf } from "../layers/layer-of.ts";
import { holdRecords, type PlaceLayer, placeLayer, placeView, rootRecords, workspaceRecords } from "../layers/layers.ts";
import { liveDir } from "../layers/live-tree.ts";
import { writeView } from "../layers/machine.ts";
import { placeMapped } from "../layers/mapped-layer.ts";
import { mountRecords } from "../layers/mounts.ts";
import { partsOf, withBase } from "../layers/parts.ts";
import { viewedDisk, viewedLayers } from "../layers/sandbox-base.ts";
import type { OciContext } from "../oci-context.ts";
import { sandboxUser } from "../template/etc-files.ts";
import { bundleConfig } from "./bundle.ts";
import { filterRecord } from "./call-filter.ts";
import type { PlanRecord } from "./launcher.ts";
import { transparentRecords } from "./transparent.ts";

/** The socket on which a sandbox's guest listens, in the sandbox's folder. */
export const SOCKET_NAME = "guest.sock";

/** OCI runtimes that would create a keyring for each sandbox, although the kernel allows each id only 200 keys. */
const keepsKeyring: ReadonlySet<string> = new Set(["crun", "runc"]);

interface Planned {
  record: SandboxRecord;
  details: OciDetails;
}

interface MachineFiles extends Planned {
  identity: Identity;
  place: PlaceLayer;
}

/** Returns the records that mount root, home and workspace. */
function machineRecords(oci: OciContext, { record, details, identity, place }: MachineFiles): PlanRecord[] {
  const config = record.spec;
  const state = viewState(oci.context.stateDir);
  const parts = partsOf(config, details);
  const basis = withBase(oci, details);
  return [
    ...rootRecords(basis.root, {
      guestPath: oci.context.guestPath,
      insideFolder: makeInsideFolder(oci.store.dir(record.id), gitSettingsFile(oci.context)),
      parts,
      place,
      state,
      identity,
      home: homeRecords(parts.home, { identity, basis, place }),
    }),
    ...transparentRecords(config, oci.store.dir(record.id)),
    ...workspaceRecords(config.workspace, {
      identity,
      part: parts.workspace,
      place,
      layers: [...viewedLayers(oci, config), ...basis.workspaceLayers],
      state,
    }),
  ];
}

/** Returns the records that build the whole root of a sandbox, with its workspace and mounts. */
function sandboxRecords(oci: OciContext, { record, details }: Planned): PlanRecord[] {
  const config = record.spec;
  const identity = identityOf(oci, details);
  const state = viewState(oci.context.stateDir);
  const layer = layerOf(config);
  const stored = layer === undefined || details.disk !== "none" ? null : layerRange(oci, layer);
  const { records, place } =
    layer === undefined || stored === null || identity.rootless || stored === identity.root.uid
      ? { records: [], place: placeLayer }
      : placeMapped(liveDir(layer), { stored, root: identity.root.uid });
  return [
    ...records,
    ...machineRecords(oci, { record, details, identity, place }),
    ...(details.disk === "memory" ? [["disk-hide"] as const] : []),
    ...mountRecords(config.mounts, { identity, state }),
    ...holdRecords(config),
  ];
}

/** Stores how to see the machine's files as a whole; see `View`. An ordinary user's overlays move no folders. */
export async function noteView(oci: OciContext, { record, details }: Planned): Promise<void> {
  const { spec: config } = record;
  const dir = oci.store.dir(record.id);
  const layer = layerOf(config);
  const { root, home, workspace, binds } = partsOf(config, details);
  if (details.disk === "image" && layer !== undefined)
    await noteDiskParts(
      layer,
      [root, home, workspace, ...binds].flatMap((part) => (part === null ? [] : [part.name])),
    );
  if (details.rootless) return;
  // The layers have the session's range, even if this sandbox has another.
  const firstId = layer === undefined ? details.firstId : (layerRange(oci, layer) ?? details.firstId);
  const identity = identityOf(oci, { firstId });
  const writable = details.basis.root.binds.filter((bind) => bind.writable);
  // The machine outlives the sandbox, whose folder contains nothing of its layers' files.
  const isOfSandbox = ([verb, source]: PlanRecord) => verb === "bind" && String(source).startsWith(`${dir}/`);
  const records = machineRecords(oci, { record, details, identity, place: placeView(dir) }).filter((each) => !isOfSandbox(each));
  const live = details.disk === "image" ? [liveDisk(layer ?? dir)] : [];
  await writeView(layer ?? dir, {
    records: withoutRepeatedMaps([...identity.plan, ["disk-tmpfs", "size=1m"], ...live, ...records]),
    views: Object.fromEntries([
      [root.name, "/"],
      ...(home === null ? [] : [[home.name, sandboxUser.home]]),
      ...(workspace === null ? [] : [[workspace.name, WORKSPACE]]),
      ...binds.map(({ name }, index) => [name, writable[index]?.target ?? "/"]),
    ]),
  });
}

/** Returns the plan that starts a sandbox. `restores`: its processes come from a memory image. */
export function launchPlan(
  oci: OciContext,
  { record, details, binary, restores }: Planned & { binary: OciBinary; restores: boolean },
): PlanRecord[] {
  const { spec: config, limits } = record;
  const entrances = cgroupEntrances(details.cgroups);
  // gVisor creates the control groups of its sandboxes.
  const views = binary.name === "runsc" ? [] : cgroupViews(details.cgroups);
  const bundle = bundleConfig({
    config,
    hidden: details.basis.hidden,
    workDescriptors: entrances.work.length,
    memoryKillsDescriptor: entrances.memoryKills !== null,
    cgroupView: views.length > 0,
    processesMax: details.cgroups.some(({ controllers }) => controllers.includes("pids")) ? null : (limits.pids ?? defaultLimits.pids),
    ownDisk: details.disk !== "none",
    reaper: !details.hasReaper ? "none" : restores ? "restores" : "starts",
    hardLimits: oci.hardLimits(),
  });
  return withoutRepeatedMaps([
    ...identityOf(oci, details).plan,
    ["folder", oci.store.dir(record.id)],
    ["listen", SOCKET_NAME],
    ["token", tokenName],
    filterRecord(config, oci.arch),
    ...entrances.join.map((path): PlanRecord => ["cgroup-join", path]),
    ...entrances.work.map((path): PlanRecord => ["cgroup-work", path]),
    ...(entrances.memoryKills === null ? [] : [["cgroup-oom", entrances.memoryKills] as const]),
    ...views.map(({ name, dir }): PlanRecord => ["cgroup-view", name, dir]),
    ...diskRecords(details, record),
    ...viewedDisk(config),
    ...sandboxRecords(oci, { record, details }),
    // crun refuses machines with both versions of control groups. Inside its own mount namespace, there is only one.
    ["hide", "/sys/fs/cgroup/unified"],
    ["read-only", "/sys/fs/cgroup"],
    ["config", JSON.stringify(bundle)],
    ["runtime", binary.path],
    // We create the groups: the OCI runtime, inside the user namespace, could not.
    ...(binary.name === "crun" ? [["option", "--cgroup-manager=disabled"] as const] : []),
    ...(keepsKeyring.has(binary.name) ? [["keyring", "--no-new-keyring"] as const] : []),
    ["id", record.id],
  ]);
}

/** Returns the plan that gives a running sandbox the root of its record. The bundle says the same to an OCI runtime. */
export function newRootPlan(oci: OciContext, { record, details, pid }: Planned & { pid: number }): PlanRecord[] {
  const { readOnlyPaths, deniedPaths } = record.spec;
  return withoutRepeatedMaps([
    ...identityOf(oci, details).plan,
    ["folder", oci.store.dir(record.id)],
    ["mount-pid", pid],
    ...sandboxRecords(oci, { record, details }),
    ...readOnlyPaths.map((path): PlanRecord => ["freeze-path", path]),
    ...[...details.basis.hidden, ...deniedPaths].map((path): PlanRecord => ["mask-path", path]),
  ]);
}

/** Drops repeated maps: layers with the same range request the same one. */
function withoutRepeatedMaps(plan: readonly PlanRecord[]): PlanRecord[] {
  const seen = new Set<string>();
  return plan.filter((record) => {
    const text = record.join(" ");
    const repeated = record[0].startsWith("map-") && seen.has(text);
    seen.add(text);
    return !repeated;
  });
}
