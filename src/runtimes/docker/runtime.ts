import { CaissonError } from "../../contract/error.ts";
import type { SandboxId, SnapshotId } from "../../contract/ids.ts";
import type { SandboxInfo } from "../../contract/sandbox.ts";
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
import { probeEngine } from "./probe.ts";
import { killSandbox, restartSandbox } from "./restart-sandbox.ts";
import { commitSnapshot, listSnapshots, removeSnapshot } from "./snapshots.ts";
import { discard, sweep } from "./sweep.ts";

export interface DockerRuntimeOptions extends EngineLocation {
  /** The engine's image that stands in for the template `host`. */
  defaultImage?: string;
  /** The cgroup, or with systemd the slice, below which the engine puts sandboxes. */
  cgroupParent?: string;
}

/** Sandboxes in a Docker or Podman engine: its image, its wall, our guest inside, which does the work. */
export function createDockerRuntime(context: RuntimeContext, options: DockerRuntimeOptions = {}): Runtime {
  const docker: DockerContext = {
    context,
    store: createStore({ stateDir: context.stateDir }),
    stateLabel: stateLabelOf(context.stateDir),
    defaultImage: options.defaultImage ?? null,
    cgroupParent: options.cgroupParent ?? null,
    accountFiles: new Map(),
    ...createEngineCache(() => connectEngine(options)),
    createFork: (spec, source) => announced(createSandbox(docker, { spec, fork: source })),
  };
  async function announced(creating: Promise<OwnedSandbox>): Promise<OwnedSandbox> {
    const sandbox = await creating;
    emitCreated(context.onEvent, sandbox.info);
    return sandbox;
  }
  const facts = async () => (await docker.engine()).facts();
  return {
    name: runtimeName,
    // Engines keep whole seconds in an image's layers.
    snapshotGrainMs: 1000,
    capabilities: async () => capabilitiesOf(await facts(), { defaultImage: docker.defaultImage }),
    probe: () => probeEngine(docker),
    create: (spec, { signal } = {}) => announced(createSandbox(docker, { spec, signal })),
    open: (id) => openSandbox(docker, id),
    salvage: (id, asked) => salvage(docker, id, asked),
    look: (id) => lookAt(docker, id),
    kill: (id) => killSandbox(docker, id),
    restart: async (id, how) => restartSandbox(docker, await ownRecord(docker, id), how),
    list: () => listSandboxes(docker),
    sweep: () => sweep(docker),
    discard: (id) => discard(docker, id),
    async snapshots() {
      return listSnapshots({ engine: await docker.engine(), stateLabel: docker.stateLabel });
    },
    async removeSnapshot(id) {
      await removeSnapshot({ engine: await docker.engine(), id, stateLabel: docker.stateLabel });
    },
    async [Symbol.asyncDispose]() {
      // Connections to the engine are made for each call and closed with it.
    },
  };
}

async function ownRecord(docker: DockerContext, id: SandboxId): Promise<SandboxRecord> {
  const record = await docker.store.read(id);
  if (record.runtime !== runtimeName) throw new CaissonError("not_found", `sandbox ${id} lives in the ${record.runtime} runtime`);
  return record;
}

async function openSandbox(docker: DockerContext, id: SandboxId): Promise<OwnedSandbox> {
  const record = await ownRecord(docker, id);
  const engine = await docker.engineFor(detailsOf(record).engineSocket);
  const { running, paused } = await stateInEngine(engine, id);
  if (!running || record.state === "creating" || record.state === "completing") throw remains(id);
  const state = paused ? "paused" : "running";
  // Whoever opens what a dead process left and nobody keeps, takes it over.
  const adopted = record.owner !== null && !record.spec.keep && !docker.store.ownerAlive(record.owner);
  const current: SandboxRecord = { ...record, state, owner: adopted ? docker.store.ownerOf() : record.owner };
  if (adopted || state !== record.state) await docker.store.write(current);
  if (!paused) return attachSandbox(docker, { record: current, engine });
  // A frozen guest answers nothing, so it is woken for as long as the greeting takes.
  const container = engine.docker.getContainer(containerName(id));
  await engine.call(`waking sandbox ${id}`, () => container.unpause());
  try {
    return await attachSandbox(docker, { record: current, engine });
  } finally {
    await engine.call(`pausing sandbox ${id}`, () => container.pause());
  }
}

/** Its processes are the engine's to number; they are not listed. */
async function lookAt(docker: DockerContext, id: SandboxId): Promise<HostView> {
  const record = await docker.store.read(id);
  const wall = createDockerWall(docker, { record, engine: await docker.engineFor(detailsOf(record).engineSocket) });
  return { condition: await wall.condition(), stats: await wall.stats().catch(() => null), processes: [] };
}

/** The engine keeps a dead container's file system until the container is removed. */
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
    throw engineError(error, { what: `looking at sandbox ${id}`, socketPath: engine.socketPath });
  }
}

function remains(id: SandboxId): CaissonError {
  return new CaissonError("lost", `sandbox ${id} has died; only its remains are there`, {
    hint: `\`caisson sandbox rm ${id}\` removes them.`,
  });
}

/**
 * Every record of this runtime, with the engine's word on which of them live. Without an engine, with the record's own.
 */
async function listSandboxes(docker: DockerContext): Promise<SandboxInfo[]> {
  const { records } = await docker.store.list();
  const ours = records.filter((record) => record.runtime === runtimeName);
  if (ours.length === 0) return [];
  const live = await liveContainers(docker).catch(() => null);
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
