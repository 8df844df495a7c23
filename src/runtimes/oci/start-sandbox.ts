import { join } from "node:path";
import { CaissonError } from "../../contract/error/error.ts";
import type { SandboxId } from "../../contract/ids.ts";
import type { SandboxConfig } from "../../contract/sandbox/sandbox.ts";
import { ignore } from "../../lib/failures.ts";
import { connectGuest, type GuestConnection } from "../../sandbox/guest/connection.ts";
import { makeGuestToken } from "../../sandbox/guest-token.ts";
import { startedProcess } from "../../sandbox/process-identity.ts";
import { resolveMounts } from "../../sandbox/shared-folders.ts";
import { viewState } from "../../sandbox/state-places.ts";
import type { SandboxRecord } from "../../sandbox/store.ts";
import { findBasis, templateLayers, withSnapshotWorkspace } from "./basis.ts";
import { cgroupFolders, makeCgroups } from "./cgroups/cgroup.ts";
import { limitCgroups } from "./cgroups/cgroup-limits.ts";
import { enterScope, SCOPE_STEP } from "./cgroups/cgroup-scope.ts";
import type { OciDetails } from "./details.ts";
import type { OciBinary } from "./discover.ts";
import { endSandbox } from "./end-sandbox.ts";
import { enforcedLimits } from "./enforced-limits.ts";
import { holdRange, rangeFor, suitableNamespaces } from "./identity/id-ranges.ts";
import { launchPlan, noteView, SOCKET_NAME } from "./launch/launch-plan.ts";
import type { HeldNamespaces } from "./launch/namespace-pool.ts";
import { diskKind, layerState, makeDisk } from "./layers/disk.ts";
import { layerOf } from "./layers/layer-of.ts";
import { resolveWorkspace } from "./layers/layers.ts";
import { createLiveTree } from "./layers/live-tree.ts";
import { withMounts } from "./layers/mounts.ts";
import { rootKeyOf } from "./layers/parts.ts";
import { baseOf, finishRestoreFor, holdBase, withLastingBinds } from "./layers/sandbox-base.ts";
import { restoreRecords } from "./memory/memory-image.ts";
import type { MemoryImage } from "./memory/memory-image-record.ts";
import { memoryOf } from "./memory/snapshot-memory.ts";
import type { OciContext } from "./oci-context.ts";
import { withRepository } from "./repository-bind.ts";
import { LINGER_FIX } from "./systemd/user-systemd.ts";

const WELCOME_TIMEOUT_MS = 30_000;

export interface Started {
  record: SandboxRecord;
  details: OciDetails;
  connection: GuestConnection;
}

export interface StartOptions {
  config: SandboxConfig;
  signal?: AbortSignal | undefined;
  /** Namespaces prepared in advance. The caller closes them. */
  namespaces?: HeldNamespaces | undefined;
  ownSnapshot?: OciDetails["ownSnapshot"];
  /** Whether it is for the pool, and has no caller yet. */
  waiting?: boolean;
  /** Whether the sandbox existed before, with its files. */
  again?: boolean;
  /** The processes that it starts with. */
  memory?: MemoryImage | undefined;
}

/**
 * Starts a sandbox: first the record, then its groups, then the launcher. If any step fails, everything created is
 * removed before this rejects.
 */
export async function startSandbox(oci: OciContext, options: StartOptions): Promise<Started> {
  const releaseMigration = oci.migration.hold(oci.cgroups());
  try {
    return await startOnce(oci, options);
  } catch (error) {
    if (!(error instanceof CaissonError) || error.details?.step !== SCOPE_STEP) throw error;
    // Retries without scopes: requested limits are then refused by name, and default ones dropped with a warning.
    oci.doWithoutScopes(error.message);
    return await startOnce(oci, options);
  } finally {
    releaseMigration();
  }
}

async function startOnce(oci: OciContext, options: StartOptions): Promise<Started> {
  const { store } = oci;
  const id = store.newId();
  const planned = await planSandbox(oci, options, {
    id,
    async firstId(config) {
      const namespaces = suitableNamespaces(options.namespaces, config);
      if (namespaces === undefined) return await rangeFor(oci, { id, config });
      holdRange(oci, namespaces.firstId, store.dir(id));
      return namespaces.firstId;
    },
  });
  const { record, details } = planned;
  store.note(record);
  try {
    await holdBase(oci, record, details);
    const namespaces = suitableNamespaces(options.namespaces, record.spec);
    const memory = options.memory ?? (await memoryOf(oci, record.spec));
    return await bringUp(oci, { record, details, options: { ...options, namespaces, memory } });
  } catch (error) {
    await ignore(endSandbox(oci, record, details), "the next sweep removes the rest; we throw the first error");
    throw error;
  }
}

/**
 * Returns the record of a sandbox that does not exist yet. Resolves folders, puts the template on disk, and finishes an
 * interrupted restore of the session. `firstId` chooses the id range, last of all.
 */
export async function planSandbox(
  oci: OciContext,
  options: StartOptions,
  { id, firstId }: { id: SandboxId; firstId: (config: SandboxConfig) => Promise<number | null> },
): Promise<{ record: SandboxRecord; details: OciDetails }> {
  const requestedConfig = await withSnapshotWorkspace(oci, options.config);
  const state = () => viewState(oci.context.stateDir);
  const config = {
    ...requestedConfig,
    workspace: resolveWorkspace(requestedConfig.workspace, { state }),
    mounts: resolveMounts(requestedConfig.mounts, { state }),
  };
  const layer = layerOf(config);
  await finishRestoreFor(oci, config);
  const { limits, warnings } = enforcedLimits(config, oci.ability(), layerState(config));
  if (config.keep && oci.cgroups().manager?.lingering === false)
    warnings.push(`the sandbox ends with the user's last session, since lingering is off (\`${LINGER_FIX}\`).`);
  if (layer !== undefined && limits.diskBytes === null) await createLiveTree(oci, layer);
  const { rootless } = oci.identity();
  const [binary] = oci.binaries();
  if (binary === undefined) throw noRuntime();
  const { basis, problem } = withRepository(withMounts(await findBasis(oci, config, { signal: options.signal }), config), config, state);
  if (problem !== null) warnings.push(`git does not work in this workspace: ${problem}.`);
  const base = await baseOf(oci, config);
  const details: OciDetails = {
    ociRuntime: binary.name,
    rootless,
    basis: base.length === 0 && layer === undefined ? basis : withLastingBinds(oci, basis, { config, base }),
    base,
    templateLayers: await templateLayers(oci, config),
    rootKey: rootKeyOf(config, basis),
    cgroups: cgroupFolders(oci.cgroups().parents, oci.cgroupName, id),
    guest: null,
    disk: diskKind(limits, { rootless }),
    ownSnapshot: options.ownSnapshot ?? null,
    frozenBy: null,
    hasReaper: oci.criu() !== null && binary.name !== "runsc",
    onDisk: null,
    waiting: options.waiting ?? false,
    firstId: await firstId(config),
  };
  const record: SandboxRecord = {
    id,
    runtime: "oci",
    state: "creating",
    createdAt: new Date().toISOString(),
    spec: config,
    limits,
    warnings,
    owner: oci.store.thisProcess(),
    details,
  };
  return { record, details };
}

/**
 * Starts a sandbox's guest, or starts one again over the files that a dead guest left. Throws without removing
 * anything.
 */
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
  // Waiting sandboxes get their workspace later, and have no files yet.
  if (!start.details.waiting) await noteView(oci, start);
  for (const binary of [first, ...others]) {
    try {
      const { pid, connection } = await launchOnce(oci, start, binary);
      const details: OciDetails = { ...start.details, ociRuntime: binary.name, guest: startedProcess(pid) };
      if (binary !== first) oci.prefer(binary);
      const running: SandboxRecord = { ...record, state: "running", owner: record.spec.keep ? null : record.owner, details };
      try {
        // The record of a sandbox that outlives this process must also survive a power cut.
        if (record.spec.keep) await oci.store.write(running);
        else oci.store.note(running);
      } catch (error) {
        connection.close();
        throw error;
      }
      return { record: running, details, connection };
    } catch (error) {
      // Another OCI runtime may succeed where this one failed. Only the socket's name remains of the first attempt.
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
    const restored = await restoreRecords(oci, options.memory);
    const lines = await oci.launch({
      what: "run",
      plan: [
        ...restored,
        ...launchPlan(oci, { ...start, binary, restores: options.memory !== undefined }),
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
        // The socket accepts connections before the guest can answer, so the two need not wait for each other.
        if (line === "listening") {
          connecting = connectGuest({ socketPath, token, timeoutMs: WELCOME_TIMEOUT_MS });
          void ignore(connecting, "awaited below");
        }
      },
    });
    const pid = Number(lines.map((line) => /^pid (\d+)$/.exec(line)?.[1]).find((text) => text !== undefined));
    if (!Number.isInteger(pid) || connecting === undefined)
      throw new CaissonError("internal", "the launcher did not report what it started");
    return { pid, connection: await connecting };
  } catch (error) {
    void ignore(connecting?.then((connection) => connection.close()) ?? Promise.resolve(), "the caller gets the launcher's failure");
    throw error;
  }
}

/**
 * If systemd creates the sandbox's group, it does so around the launcher, and everything that the launcher starts
 * belongs to it.
 */
function scopeEntry(oci: OciContext, { record, details }: { record: SandboxRecord; details: OciDetails }) {
  const folder = details.cgroups.find(({ scope }) => scope);
  const { manager } = oci.cgroups();
  if (folder === undefined || manager === null) return undefined;
  return async (pid: number) => {
    await enterScope({ manager, folder, pid, uid: process.getuid?.() ?? 0 });
    limitCgroups([folder], record.limits);
  };
}

function isRuntimeFailure(error: unknown): boolean {
  return error instanceof CaissonError && error.details?.step === "runtime";
}

function noRuntime(): CaissonError {
  return new CaissonError("unavailable", "no OCI runtime is installed", { hint: "Install one: `apt install crun` (or runc)." });
}
