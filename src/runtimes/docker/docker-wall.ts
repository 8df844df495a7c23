import { CaissonError } from "../../contract/error/error.ts";
import type { SandboxState } from "../../contract/sandbox/sandbox.ts";
import { ignore } from "../../lib/failures.ts";
import type { GuestCondition } from "../../sandbox/guest/waits.ts";
import { conditionOfProcess } from "../../sandbox/process-identity.ts";
import { refuseMemory } from "../../sandbox/refuse-memory.ts";
import { configOfFork } from "../../sandbox/sandbox-config.ts";
import type { SandboxRecord } from "../../sandbox/store.ts";
import type { Wall } from "../../sandbox/wall.ts";
import { containerName } from "./container-config.ts";
import { detailsOf } from "./details.ts";
import type { DockerContext } from "./docker-context.ts";
import type { Engine } from "./engine.ts";
import { engineError, statusOf } from "./engine-error.ts";
import { inspectImage } from "./image.ts";
import { removeImage, removeSandbox } from "./remove-sandbox.ts";
import { commitFork, commitSnapshot } from "./snapshots.ts";
import { sandboxStats } from "./stats.ts";

/** Creates a sandbox's wall: the operations that the engine performs on it. */
export function createDockerWall(docker: DockerContext, options: { record: SandboxRecord; engine: Engine }): Wall {
  const { record, engine } = options;
  const { id } = record;
  const details = detailsOf(record);
  const container = engine.docker.getContainer(containerName(id));

  async function setState(state: SandboxState): Promise<void> {
    await docker.store.write({ ...(await docker.store.read(id)), state });
  }

  /**
   * Engines reject freezing a frozen sandbox or thawing a running one as a conflict. Only the resulting state counts.
   */
  async function setPaused(paused: boolean): Promise<void> {
    const what = `${paused ? "pausing" : "resuming"} sandbox ${id}`;
    try {
      await (paused ? container.pause() : container.unpause());
    } catch (error) {
      const translated = engineError(error, { what, socketPath: engine.socketPath });
      if (statusOf(error) === null || statusOf(error) === 404) throw translated;
      const { State } = await engine.call(what, () => container.inspect());
      if (State.Paused !== paused) throw translated;
    }
    await setState(paused ? "paused" : "running");
  }

  async function condition(): Promise<GuestCondition> {
    try {
      const { State } = await container.inspect();
      if (State.Paused) return "frozen";
      if (!State.Running) return "dead";
      // The pids of an engine on another machine mean nothing here.
      const seen = conditionOfProcess({ pid: State.Pid });
      return seen === "dead" ? "unknown" : seen;
    } catch (error) {
      return statusOf(error) === 404 ? "dead" : "unknown";
    }
  }

  function requireOwnFiles(): void {
    if (details.workspace !== "rw") return;
    throw new CaissonError("unsupported", `the workspace of sandbox ${id} is a host folder, which a snapshot would not include`, {
      hint: "Create the sandbox with an overlay workspace to snapshot and fork it.",
    });
  }

  return {
    stats: () => sandboxStats({ engine, id }),
    condition,
    async pause(pauseOptions = {}) {
      refuseMemory(pauseOptions, "docker");
      await setPaused(true);
    },
    resume: () => setPaused(false),
    async snapshot({ name, ...snapshotOptions }) {
      refuseMemory(snapshotOptions, "docker");
      requireOwnFiles();
      return commitSnapshot({
        engine,
        id,
        name: name ?? null,
        owner: record.spec.owner,
        workUid: details.workUid,
        stateLabel: docker.stateLabel,
      });
    },
    async fork(forkOptions) {
      refuseMemory(forkOptions, "docker");
      requireOwnFiles();
      const forkId = docker.store.newId();
      const reference = await commitFork({ engine, id, forkId, workUid: details.workUid, stateLabel: docker.stateLabel });
      try {
        const image = await inspectImage(engine, reference);
        return await docker.createFork(configOfFork(record.spec, forkOptions), { id: forkId, image, reference, engine });
      } catch (error) {
        await ignore(removeImage(engine, reference), "the next sweep finds the image by its labels; we throw the first error");
        throw error;
      }
    },
    async release() {
      await docker.store.write({ ...(await docker.store.read(id)), owner: null });
    },
    destroy: () => removeSandbox(docker, record),
  };
}
