import { join } from "node:path";
import { defaultLimits } from "../../contract/default-limits.ts";
import { CaissonError } from "../../contract/error.ts";
import type { SandboxSpec } from "../../contract/sandbox.ts";
import { gitSettingsFile } from "../../sandbox/git-settings.ts";
import { connectGuest, type GuestConnection } from "../../sandbox/guest/connection.ts";
import { makeGuestToken, tokenName } from "../../sandbox/guest-token.ts";
import { makeInsideFolder } from "../../sandbox/inside-folder.ts";
import { startedProcess } from "../../sandbox/process-identity.ts";
import { resolveMounts } from "../../sandbox/shared-folders.ts";
import { viewState } from "../../sandbox/state-places.ts";
import type { SandboxRecord } from "../../sandbox/store.ts";
import { findBasis, withSnapshotWorkspace } from "./basis.ts";
import { cgroupEntrances, cgroupFolders, cgroupViews, makeCgroups } from "./cgroups/cgroup.ts";
import { limitCgroups } from "./cgroups/cgroup-limits.ts";
import { enterScope, SCOPE_STEP } from "./cgroups/cgroup-scope.ts";
import type { OciDetails } from "./details.ts";
import type { OciBinary } from "./discover.ts";
import { endSandbox } from "./end-sandbox.ts";
import { enforcedLimits } from "./enforced-limits.ts";
import { holdRange, identityOf, rangeFor, suitableNamespaces } from "./identity/id-ranges.ts";
import { bundleConfig } from "./launch/bundle.ts";
import { filterRecord } from "./launch/call-filter.ts";
import type { PlanRecord } from "./launch/launcher.ts";
import type { HeldNamespaces } from "./launch/namespace-pool.ts";
import { transparentRecords } from "./launch/transparent.ts";
import { diskKind, diskRecords, layerState, makeDisk } from "./layers/disk.ts";
import { homeRecords } from "./layers/home.ts";
import { finishRestore } from "./layers/layer-copies.ts";
import { holdRecords, resolveWorkspace, rootRecords, workspaceRecords } from "./layers/layers.ts";
import { mountRecords, withMounts } from "./layers/mounts.ts";
import type { OciContext } from "./oci-context.ts";
import { withRepository } from "./repository-bind.ts";
import { LINGER_FIX } from "./systemd/user-systemd.ts";

export const SOCKET_NAME = "guest.sock";
const WELCOME_TIMEOUT_MS = 30_000;

export interface Started {
  record: SandboxRecord;
  details: OciDetails;
  connection: GuestConnection;
}

export interface StartOptions {
  spec: SandboxSpec;
  signal?: AbortSignal | undefined;
  /** Namespaces made beforehand; the caller keeps them. */
  namespaces?: HeldNamespaces | undefined;
  ownSnapshot?: OciDetails["ownSnapshot"];
  /** For the pool: nobody has asked for it yet. */
  waiting?: boolean;
  /** It was there before, and so are its files. */
  again?: boolean;
}

/**
 * Starts a sandbox: the record first, then its groups, then the launcher. Whatever fails, whatever was made is removed
 * before this rejects.
 */
export async function startSandbox(oci: OciContext, options: StartOptions): Promise<Started> {
  const releaseMigration = oci.migration.hold(oci.cgroups());
  try {
    return await startOnce(oci, options);
  } catch (error) {
    if (!(error instanceof CaissonError) || error.details?.step !== SCOPE_STEP) throw error;
    // Once more without: limits that were asked for are then refused by name, and defaults dropped with a warning.
    oci.doWithoutScopes(error.message);
    return await startOnce(oci, options);
  } finally {
    releaseMigration();
  }
}

async function startOnce(oci: OciContext, options: StartOptions): Promise<Started> {
  const { store } = oci;
  const asked = await withSnapshotWorkspace(oci, options.spec);
  const state = () => viewState(oci.context.stateDir);
  const spec = { ...asked, workspace: resolveWorkspace(asked.workspace, { state }), mounts: resolveMounts(asked.mounts, { state }) };
  if (spec.workspace.kind === "folder" && spec.workspace.layer !== undefined) finishRestore(spec.workspace.layer);
  const { limits, warnings } = enforcedLimits(spec, oci.ability(), layerState(spec));
  if (spec.keep && oci.cgroups().manager?.lingering === false)
    warnings.push(`the sandbox ends with the user's last session, since lingering is off (\`${LINGER_FIX}\`).`);
  const { rootless } = oci.identity();
  const [binary] = oci.binaries();
  if (binary === undefined) throw noRuntime();
  const { basis, problem } = withRepository(withMounts(await findBasis(oci, spec, { signal: options.signal }), spec), spec, state);
  if (problem !== null) warnings.push(`git does not work in this workspace: ${problem}.`);
  const id = store.newId();
  const namespaces = suitableNamespaces(options.namespaces, spec);
  const firstId = namespaces?.firstId ?? (await rangeFor(oci, { id, spec }));
  if (namespaces !== undefined) holdRange(oci, namespaces.firstId, store.dir(id));
  const details: OciDetails = {
    firstId,
    ociRuntime: binary.name,
    rootless,
    basis,
    cgroups: cgroupFolders(oci.cgroups().parents, oci.cgroupName, id),
    guest: null,
    disk: diskKind(limits, { rootless }),
    ownSnapshot: options.ownSnapshot ?? null,
    frozenBy: null,
    waiting: options.waiting ?? false,
  };
  const record: SandboxRecord = {
    id,
    runtime: "oci",
    state: "creating",
    createdAt: new Date().toISOString(),
    spec,
    limits,
    warnings,
    owner: store.ownerOf(),
    details,
  };
  store.note(record);
  try {
    return await bringUp(oci, { record, details, options: { ...options, namespaces } });
  } catch (error) {
    // What cannot be removed now is found by the next sweep; the first failure is the one to tell.
    await endSandbox(oci, record, details).catch(() => {});
    throw error;
  }
}

/** Also of a sandbox whose guest died, over the files that it left. Throws without removing anything. */
export async function bringUp(
  oci: OciContext,
  start: { record: SandboxRecord; details: OciDetails; options: StartOptions },
): Promise<Started> {
  const { record, options } = start;
  makeCgroups(start.details.cgroups);
  limitCgroups(
    start.details.cgroups.filter(({ scope }) => !scope),
    record.limits,
  );
  if (start.details.disk === "image" && options.again !== true) await makeDisk(oci, record);
  const [first, ...others] = oci.binaries();
  if (first === undefined) throw noRuntime();
  for (const binary of [first, ...others]) {
    try {
      const { pid, connection } = await launchOnce(oci, start, binary);
      const details: OciDetails = { ...start.details, ociRuntime: binary.name, guest: startedProcess(pid) };
      if (binary !== first) oci.prefer(binary);
      const running: SandboxRecord = { ...record, state: "running", owner: record.spec.keep ? null : record.owner, details };
      try {
        // What is to outlive this process must outlive a power cut as well, as far as its record goes.
        if (record.spec.keep) await oci.store.write(running);
        else oci.store.note(running);
      } catch (error) {
        connection.close();
        throw error;
      }
      return { record: running, details, connection };
    } catch (error) {
      // Another OCI runtime may manage what this one does not; nothing of the first attempt lives on but its socket's
      // name.
      if (!isRuntimeFailure(error) || options.signal?.aborted || binary === others.at(-1) || others.length === 0) throw error;
      await oci.launch({ what: "remove", plan: [["remove", join(oci.store.dir(record.id), SOCKET_NAME)]] });
    }
  }
  throw noRuntime();
}

async function launchOnce(
  oci: OciContext,
  start: { record: SandboxRecord; details: OciDetails; options: StartOptions },
  binary: OciBinary,
): Promise<{ pid: number; connection: GuestConnection }> {
  const { record, options } = start;
  const namespaces = options.namespaces;
  const socketPath = join(oci.store.dir(record.id), SOCKET_NAME);
  const token = makeGuestToken(oci.store.dir(record.id));
  let connecting: Promise<GuestConnection> | undefined;
  try {
    const lines = await oci.launch({
      what: "run",
      plan: [
        ...launchPlan(oci, start, binary),
        ...(namespaces === undefined
          ? []
          : ([
              ["userns-fd", 3],
              ["netns-fd", 4],
            ] as const)),
      ],
      descriptors: namespaces === undefined ? [] : [namespaces.user, namespaces.network],
      signal: options.signal,
      prepare: scopeEntry(oci, start),
      lastLine: /^pid \d+$/,
      onLine: (line) => {
        // The socket takes connections before the guest is there to answer, so the two need not wait for each other.
        if (line === "listening") {
          connecting = connectGuest({ socketPath, token, timeoutMs: WELCOME_TIMEOUT_MS });
          connecting.catch(() => {});
        }
      },
    });
    const pid = Number(lines.map((line) => /^pid (\d+)$/.exec(line)?.[1]).find((text) => text !== undefined));
    if (!Number.isInteger(pid) || connecting === undefined) throw new CaissonError("internal", "the launcher did not say what it started");
    return { pid, connection: await connecting };
  } catch (error) {
    void connecting?.then(
      (connection) => connection.close(),
      () => {},
    );
    throw error;
  }
}

/** Those that would make a keyring for each sandbox, as an id that may have 200. */
const keepsKeyring: ReadonlySet<string> = new Set(["crun", "runc"]);

/** Where systemd makes the sandbox's group, it is made around the launcher: what that starts is born in it. */
function scopeEntry(oci: OciContext, { record, details }: { record: SandboxRecord; details: OciDetails }) {
  const folder = details.cgroups.find(({ scope }) => scope);
  const { manager } = oci.cgroups();
  if (folder === undefined || manager === null) return undefined;
  return async (pid: number) => {
    await enterScope({ manager, folder, pid, uid: process.getuid?.() ?? 0 });
    limitCgroups([folder], record.limits);
  };
}

function launchPlan(oci: OciContext, start: { record: SandboxRecord; details: OciDetails }, binary: OciBinary): PlanRecord[] {
  const { record, details } = start;
  const { spec, limits } = record;
  const identity = identityOf(oci, details);
  const state = viewState(oci.context.stateDir);
  const disk = details.disk !== "none";
  const entrances = cgroupEntrances(details.cgroups);
  // gVisor's sandboxes have control groups of its own making.
  const views = binary.name === "runsc" ? [] : cgroupViews(details.cgroups);
  const config = bundleConfig({
    spec,
    hidden: details.basis.hidden,
    workDescriptors: entrances.work.length,
    memoryKillsDescriptor: entrances.memoryKills !== null,
    cgroupView: views.length > 0,
    processesMax: details.cgroups.some(({ controllers }) => controllers.includes("pids")) ? null : (limits.pids ?? defaultLimits.pids),
    ownDisk: disk,
    hardLimits: oci.hardLimits(),
  });
  return withoutRepeatedMaps([
    ...identity.plan,
    ["folder", oci.store.dir(record.id)],
    ["listen", SOCKET_NAME],
    ["token", tokenName],
    filterRecord(spec, oci.arch),
    ...entrances.join.map((path): PlanRecord => ["cgroup-join", path]),
    ...entrances.work.map((path): PlanRecord => ["cgroup-work", path]),
    ...(entrances.memoryKills === null ? [] : [["cgroup-oom", entrances.memoryKills] as const]),
    ...views.map(({ name, dir }): PlanRecord => ["cgroup-view", name, dir]),
    ...diskRecords(details, record),
    ...rootRecords(details.basis.root, {
      guestPath: oci.context.guestPath,
      insideFolder: makeInsideFolder(oci.store.dir(record.id), gitSettingsFile(oci.context)),
      disk,
      state,
      identity,
      home: homeRecords(spec, { identity, disk, basis: details.basis }),
    }),
    ...transparentRecords(spec, oci.store.dir(record.id)),
    ...workspaceRecords(spec.workspace, { identity, disk, layers: details.basis.workspaceLayers, state }),
    ...mountRecords(spec.mounts, { identity, state }),
    ...holdRecords(spec),
    // crun refuses machines with both versions of control groups; inside its own mount namespace there is only one.
    ["hide", "/sys/fs/cgroup/unified"],
    ["read-only", "/sys/fs/cgroup"],
    ["config", JSON.stringify(config)],
    ["runtime", binary.path],
    // Groups are ours to make: the OCI runtime, inside the user namespace, could not.
    ...(binary.name === "crun" ? [["option", "--cgroup-manager=disabled"] as const] : []),
    ...(keepsKeyring.has(binary.name) ? [["keyring", "--no-new-keyring"] as const] : []),
    ["id", record.id],
  ]);
}

/** Layers of the same range ask for the same map. */
function withoutRepeatedMaps(plan: readonly PlanRecord[]): PlanRecord[] {
  const seen = new Set<string>();
  return plan.filter((record) => {
    const text = record.join(" ");
    const repeated = record[0].startsWith("map-") && seen.has(text);
    seen.add(text);
    return !repeated;
  });
}

function isRuntimeFailure(error: unknown): boolean {
  return error instanceof CaissonError && error.details?.step === "runtime";
}

function noRuntime(): CaissonError {
  return new CaissonError("unavailable", "no OCI runtime is installed", { hint: "Install one: `apt install crun` (or runc)." });
}
