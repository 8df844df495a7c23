import { CaissonError } from "../../contract/error.ts";
import type { SandboxState } from "../../contract/sandbox.ts";
import type { GuestCondition } from "../../sandbox/guest/waits.ts";
import { conditionOfProcess } from "../../sandbox/process-identity.ts";
import { forkedSpec } from "../../sandbox/spec.ts";
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

/** The engine's part in a sandbox's life. */
export function createDockerWall(docker: DockerContext, options: { record: SandboxRecord; engine: Engine }): Wall {
  const { record, engine } = options;
  const { id } = record;
  const details = detailsOf(record);
  const container = engine.docker.getContainer(containerName(id));

  async function setState(state: SandboxState): Promise<void> {
    await docker.store.write({ ...(await docker.store.read(id)), state });
  }

  /** Freezing what is frozen and thawing what runs is refused by engines as a conflict; the state is what counts. */
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
      // An engine on another machine numbers processes of its own.
      const seen = conditionOfProcess({ pid: State.Pid });
      return seen === "dead" ? "unknown" : seen;
    } catch (error) {
      return statusOf(error) === 404 ? "dead" : "unknown";
    }
  }

  function requireOwnFiles(): void {
    if (details.workspace !== "rw") return;
    throw new CaissonError("unsupported", `the workspace of sandbox ${id} is a folder of the host's, which a snapshot would not hold`, {
      hint: "Create the sandbox with an overlay workspace to be able to snapshot and fork it.",
    });
  }

  return {
    stats: () => sandboxStats({ engine, id }),
    condition,
    pause: () => setPaused(true),
    resume: () => setPaused(false),
    async snapshot({ name }) {
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
    async fork(asked) {
      requireOwnFiles();
      const forkId = docker.store.newId();
      const reference = await commitFork({ engine, id, forkId, workUid: details.workUid, stateLabel: docker.stateLabel });
      try {
        const image = await inspectImage(engine, reference);
        return await docker.createFork(forkedSpec(record.spec, asked), { id: forkId, image, reference, engine });
      } catch (error) {
        await removeImage(engine, reference).catch(() => {
          // The engine is gone; the next sweep finds the image by its labels.
        });
        throw error;
      }
    },
    async release() {
      await docker.store.write({ ...(await docker.store.read(id)), owner: null });
    },
    destroy: () => removeSandbox(docker, record),
  };
}
