import { CaissonError } from "../../contract/error/error.ts";
import type { SandboxId, SnapshotId } from "../../contract/ids.ts";
import type { SandboxInfo } from "../../contract/sandbox/sandbox.ts";
import { ignore } from "../../lib/failures.ts";
import type { HostView, Runtime, RuntimeContext } from "../../sandbox/runtime.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import { emitCreated } from "../../sandbox/sandbox-events.ts";
import { createStore, infoOf, type SandboxRecord } from "../../sandbox/store.ts";
import { attachSandbox } from "./attach-sandbox.ts";
import { containerName, labels } from "./container-config.ts";
import { createSandbox } from "./create-sandbox.ts";
import { detailsOf, runtimeName, stateLabelOf } from "./details.ts";
import { createEngineCache, type DockerContext } from "./docker-context.ts";
import { createDockerWall } from "./docker-wall.ts";
import { connectEngine, type Engine, type EngineLocation } from "./engine.ts";
import { engineError, statusOf } from "./engine-error.ts";
import { capabilitiesOf } from "./engine-facts.ts";
import { dockerPoints } from "./points.ts";
import { probeEngine } from "./probe.ts";
import { killSandbox, restartSandbox } from "./restart-sandbox.ts";
import { commitSnapshot, listSnapshots, removeSnapshot } from "./snapshots.ts";
import { discard, sweep } from "./sweep.ts";

const FRESH_IMAGE_SECONDS = 60;

export interface DockerRuntimeOptions extends EngineLocation {
  /** The engine image that replaces the template `host`. */
  defaultImage?: string;
  /** The cgroup, or with systemd the slice, under which the engine puts sandboxes. */
  cgroupParent?: string;
  /** How long an image may exist before the record that explains it, in seconds. For tests. */
  freshImageSeconds?: number;
}

/**
 * Creates the runtime for sandboxes in a Docker or Podman engine: the engine provides the image and the wall, our guest
 * does the work inside.
 */
export function createDockerRuntime(context: RuntimeContext, options: DockerRuntimeOptions = {}): Runtime {
  const docker: DockerContext = {
    context,
    store: createStore({ stateDir: context.stateDir }),
    stateLabel: stateLabelOf(context.stateDir),
    defaultImage: options.defaultImage ?? null,
    cgroupParent: options.cgroupParent ?? null,
    freshImageSeconds: options.freshImageSeconds ?? FRESH_IMAGE_SECONDS,
    accountFiles: new Map(),
    ...createEngineCache(() => connectEngine(options)),
    createFork: (config, source) => announceCreated(createSandbox(docker, { config, fork: source })),
  };
  async function announceCreated(creating: Promise<OwnedSandbox>): Promise<OwnedSandbox> {
    const sandbox = await creating;
    emitCreated(context.onEvent, sandbox.info);
    return sandbox;
  }
  const facts = async () => (await docker.engine()).facts();
  return {
    name: runtimeName,
    // Engines store whole seconds in image layers.
    snapshotGrainMs: 1000,
    capabilities: async () => capabilitiesOf(await facts(), { defaultImage: docker.defaultImage }),
    probe: () => probeEngine(docker),
    create: (config, { signal } = {}) => announceCreated(createSandbox(docker, { config, signal })),
    open: (id) => openSandbox(docker, id),
    salvage: (id, salvageOptions) => salvage(docker, id, salvageOptions),
    look: (id) => inspectSandbox(docker, id),
    kill: (id) => killSandbox(docker, id),
    restart: async (id, how) => restartSandbox(docker, await ownRecord(docker, id), how),
    list: () => listSandboxes(docker),
    sweep: () => sweep(docker),
    discard: (id) => discard(docker, id),
    snapshotPoints: dockerPoints(docker),
    async snapshots() {
      return listSnapshots({ engine: await docker.engine(), stateLabel: docker.stateLabel });
    },
    async removeSnapshot(id) {
      await removeSnapshot({ engine: await docker.engine(), id, stateLabel: docker.stateLabel });
    },
    async [Symbol.asyncDispose]() {
      // Each call opens and closes its own connection to the engine.
    },
  };
}

async function ownRecord(docker: DockerContext, id: SandboxId): Promise<SandboxRecord> {
  const record = await docker.store.read(id);
  if (record.runtime !== runtimeName) throw new CaissonError("not_found", `sandbox ${id} belongs to the ${record.runtime} runtime`);
  return record;
}

async function openSandbox(docker: DockerContext, id: SandboxId): Promise<OwnedSandbox> {
  const record = await ownRecord(docker, id);
  const engine = await docker.engineFor(detailsOf(record).engineSocket);
  const { running, paused } = await stateInEngine(engine, id);
  if (!running || record.state === "creating" || record.state === "completing") throw remains(id);
  const state = paused ? "paused" : "running";
  // A process that opens an unkept sandbox of a dead process takes it over.
  const adopted = record.owner !== null && !record.spec.keep && !docker.store.isHolderAlive(record.owner);
  const current: SandboxRecord = { ...record, state, owner: adopted ? docker.store.thisProcess() : record.owner };
  if (adopted || state !== record.state) await docker.store.write(current);
  if (!paused) return attachSandbox(docker, { record: current, engine });
  // A frozen guest does not answer, so it is thawed while we connect.
  const container = engine.docker.getContainer(containerName(id));
  await engine.call(`waking sandbox ${id}`, () => container.unpause());
  try {
    return await attachSandbox(docker, { record: current, engine });
  } finally {
    await engine.call(`pausing sandbox ${id}`, () => container.pause());
  }
}

/** Inspects a sandbox from the host. Lists no processes, since the engine numbers them. */
async function inspectSandbox(docker: DockerContext, id: SandboxId): Promise<HostView> {
  const record = await docker.store.read(id);
  const wall = createDockerWall(docker, { record, engine: await docker.engineFor(detailsOf(record).engineSocket) });
  return { condition: await wall.condition(), stats: (await ignore(wall.stats(), "a dead sandbox has no stats")) ?? null, processes: [] };
}

/** Takes a snapshot of a dead sandbox: the engine keeps a container's file system until the container is removed. */
async function salvage(docker: DockerContext, id: SandboxId, { name }: { name: string }): Promise<SnapshotId> {
  const record = await docker.store.read(id);
  const details = detailsOf(record);
  const engine = await docker.engineFor(details.engineSocket);
  return await commitSnapshot({ engine, id, name, owner: record.spec.owner, workUid: details.workUid, stateLabel: docker.stateLabel });
}

async function stateInEngine(engine: Engine, id: SandboxId): Promise<{ running: boolean; paused: boolean }> {
  try {
    const { State } = await engine.docker.getContainer(containerName(id)).inspect();
    return { running: State.Running, paused: State.Paused };
  } catch (error) {
    if (statusOf(error) === 404) return { running: false, paused: false };
    throw engineError(error, { what: `inspecting sandbox ${id}`, socketPath: engine.socketPath });
  }
}

function remains(id: SandboxId): CaissonError {
  return new CaissonError("lost", `sandbox ${id} has died; only its remains exist`, {
    hint: `Run \`caisson sandbox rm ${id}\` to remove them.`,
  });
}

/**
 * Lists every sandbox of this runtime, with the engine's report on which ones run or, without an engine, the record's
 * state.
 */
async function listSandboxes(docker: DockerContext): Promise<SandboxInfo[]> {
  const { records } = await docker.store.list();
  const ours = records.filter((record) => record.runtime === runtimeName);
  if (ours.length === 0) return [];
  const live = (await ignore(liveContainers(docker), "without an engine, the records say what exists")) ?? null;
  return ours.map((record) => {
    const info = infoOf(record);
    const expected = record.state === "running" || record.state === "paused";
    return live === null || !expected || live.has(record.id) ? info : { ...info, state: "failed" as const };
  });
}

async function liveContainers(docker: DockerContext): Promise<Set<string>> {
  const engine = await docker.engine();
  const filters = { label: [`${labels.state}=${docker.stateLabel}`], status: ["running", "paused"] };
  const containers = await engine.call("listing sandboxes", (docker) => docker.listContainers({ filters }));
  return new Set(containers.map(({ Labels }) => Labels[labels.sandbox] ?? ""));
}
