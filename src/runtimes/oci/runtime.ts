import { join } from "node:path";
import { CaissonError } from "../../contract/error/error.ts";
import type { SandboxId } from "../../contract/ids.ts";
import type { SandboxConfig } from "../../contract/sandbox/sandbox.ts";
import { defined } from "../../lib/defined.ts";
import { gitSettingsEnv } from "../../sandbox/git-settings.ts";
import { connectGuest } from "../../sandbox/guest/connection.ts";
import { explainSilence } from "../../sandbox/guest/waits.ts";
import { createGuestSandbox } from "../../sandbox/guest-sandbox.ts";
import { readGuestToken } from "../../sandbox/guest-token.ts";
import { seenProcesses } from "../../sandbox/host-processes.ts";
import type { HostView, Runtime, RuntimeContext, RuntimeImages } from "../../sandbox/runtime.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import { refuseNetwork } from "../../sandbox/sandbox-config.ts";
import { emitCreated } from "../../sandbox/sandbox-events.ts";
import { infoOf, isWaiting, type SandboxRecord } from "../../sandbox/store.ts";
import { ociCapabilities } from "./capabilities.ts";
import { detailsOf, type OciDetails } from "./details.ts";
import { endUnrecorded } from "./end-sandbox.ts";
import { conditionOf, thawAfterDeath } from "./freeze.ts";
import { processesOf } from "./identity/namespace-processes.ts";
import { SOCKET_NAME } from "./launch/launch-plan.ts";
import { packFiles, unpackFiles } from "./layers/pack-files.ts";
import { ociPoints, removeLayer, workspaceFolders } from "./layers/points.ts";
import { isBuiltOn, listSnapshots, readSnapshot, removeSnapshotFiles } from "./layers/snapshot-store.ts";
import { refuseOnDisk } from "./memory/memory-image.ts";
import type { MemoryImage } from "./memory/memory-image-record.ts";
import { wake } from "./memory/pause-to-disk.ts";
import { createOciContext, type OciContext, type OciOptions } from "./oci-context.ts";
import { createPool } from "./pool/pool.ts";
import { type Started, startSandbox } from "./start-sandbox.ts";
import { sweepSandboxes } from "./sweep.ts";
import { createWall, statsOf } from "./wall.ts";

export type { OciOptions } from "./oci-context.ts";

const OPEN_TIMEOUT_MS = 10_000;

export interface OciRuntime extends Runtime {
  /** Resolves when the pool is full. For measurements and tests. */
  warm(): Promise<void>;
}

/**
 * Creates the runtime for sandboxes that an OCI runtime (crun, runc …) starts, as root or as an ordinary user, without
 * a daemon.
 */
export function createOciRuntime(context: RuntimeContext, options: OciOptions): OciRuntime {
  const oci = createOciContext(context, options);
  const pool = createPool(oci);

  const wrap = ({ record, details, connection }: Started, onEvent = context.onEvent): OwnedSandbox =>
    createGuestSandbox({
      info: infoOf(record),
      config: record.spec,
      connection,
      wall: createWall({ oci, record, details, forkFrom, onEnding: pool.giveWay }),
      onEvent,
      defaultEnv: { ...gitSettingsEnv, ...details.basis.env },
    });

  const create = async (config: SandboxConfig, createOptions: { signal?: AbortSignal; ownSnapshot?: OciDetails["ownSnapshot"] } = {}) => {
    refuseNetwork(config, ociCapabilities(oci));
    const started = await pool.take({ config, ...createOptions });
    emitCreated(context.onEvent, infoOf(started.record));
    return wrap(started);
  };
  /** Like a pooled sandbox, it belongs to no user: it counts toward no limit and appears in no list. */
  const forProbe = {
    start: (options: { config: SandboxConfig; memory?: MemoryImage }) => startSandbox(oci, { ...options, waiting: true }),
    wrap: (started: Started) => wrap(started, () => {}),
  };
  const createForProbe = async (config: SandboxConfig) => forProbe.wrap(await forProbe.start({ config }));
  const probeMemory = async () => (await import("./memory/memory-findings.ts")).memoryFindings(oci, forProbe);

  const forkFrom = async (snapshot: string, config: SandboxConfig): Promise<OwnedSandbox> => {
    try {
      return await create({ ...config, template: { kind: "snapshot", id: snapshot } }, { ownSnapshot: snapshot });
    } catch (error) {
      await removeSnapshotFiles(oci, snapshot);
      throw error;
    }
  };

  return {
    name: "oci",
    capabilities: async () => ociCapabilities(oci),
    probe: async () => (await import("./probe.ts")).probeHouse(oci, { create: createForProbe, memoryFindings: probeMemory }),
    create: (config, createOptions = {}) => create(config, createOptions),
    async open(id) {
      const found = await ownRecord(oci.store.read(id), id);
      const record = await thawAfterDeath(oci, found);
      const details = detailsOf(record);
      refuseOnDisk(id, details);
      if (record.state !== "running" && record.state !== "paused")
        throw new CaissonError("lost", `sandbox ${id} is ${record.state}`, { hint: "The next sweep removes what is left of it." });
      const folder = oci.store.dir(id);
      const token = readGuestToken(folder);
      const connecting = connectGuest({ socketPath: join(folder, SOCKET_NAME), token, timeoutMs: OPEN_TIMEOUT_MS });
      const connection = await explainSilence(connecting, {
        what: `opening sandbox ${id}`,
        condition: () => conditionOf(oci, id, details),
      });
      return wrap({ record, details, connection });
    },
    wake: async (id) => wake(oci, id),
    look: (id) => inspectHost(oci, id),
    kill: async (id) => (await import("./restart-sandbox.ts")).killSandbox(oci, id),
    restart: async (id, how) => (await import("./restart-sandbox.ts")).restartSandbox(oci, await ownRecord(oci.store.read(id), id), how),
    async list() {
      const { records } = await oci.store.list();
      return records.filter((record) => record.runtime === "oci" && !isWaiting(record)).map(infoOf);
    },
    sweep: () => sweepSandboxes(oci),
    discard: (id) => endUnrecorded(oci, id),
    layerFolders: (layer, options) => workspaceFolders(oci, layer, options),
    changesFolder: (id) => join(oci.store.dir(id), "workspace-upper"),
    removeLayer: (layer) => removeLayer(oci, layer),
    images: lazyImages(oci),
    points: ociPoints(oci),
    packFiles: (options) => packFiles(oci, options),
    unpackFiles: (options) => unpackFiles(oci, options),
    async snapshots() {
      const { snapshots } = await listSnapshots(oci);
      return snapshots
        .filter(({ hiddenFor }) => hiddenFor === null)
        .map(({ id, name, sandbox, createdAt, bytes, socket, spec: { workspace, owner } }) => {
          const info = { id, name, sandbox, createdAt, bytes, memory: socket !== null, ...defined({ owner }) };
          return workspace.kind === "folder" && workspace.access === "overlay" ? { ...info, workspaceFolder: workspace.path } : info;
        });
    },
    async removeSnapshot(id) {
      await readSnapshot(oci, id);
      if (await isBuiltOn(oci, id))
        throw new CaissonError("conflict", `snapshot ${id} is in use by a sandbox or another snapshot`, {
          hint: "Remove that sandbox or snapshot first.",
        });
      await removeSnapshotFiles(oci, id);
    },
    pooled: () => pool.size(),
    warm: () => pool.warm(),
    [Symbol.asyncDispose]: () => pool.close(),
  };
}

async function inspectHost(oci: OciContext, id: SandboxId): Promise<HostView> {
  const details = detailsOf(await ownRecord(oci.store.read(id), id));
  const processes = details.guest === null ? [] : seenProcesses(processesOf(details.guest));
  return { condition: await conditionOf(oci, id, details), stats: statsOf(details), processes };
}

/** Loaded on demand: few commands build images. */
function lazyImages(oci: OciContext): RuntimeImages {
  const load = async () => (await import("./layers/images.ts")).ociImages(oci);
  return {
    async *build(request) {
      yield* (await load()).build(request);
    },
    list: async () => (await load()).list(),
    remove: async (name) => (await load()).remove(name),
    unused: async () => (await load()).unused(),
    removeUnused: async (name) => (await load()).removeUnused(name),
  };
}

async function ownRecord(reading: Promise<SandboxRecord>, id: SandboxId): Promise<SandboxRecord> {
  const record = await reading;
  if (record.runtime !== "oci" || isWaiting(record)) throw new CaissonError("not_found", `there is no sandbox ${id} in the oci runtime`);
  return record;
}
