import { rm } from "node:fs/promises";
import { CaissonError } from "../../contract/error/error.ts";
import type { SandboxId } from "../../contract/ids.ts";
import type { SandboxRecord } from "../../sandbox/store.ts";
import { attachSandbox } from "./attach-sandbox.ts";
import { containerName } from "./container-config.ts";
import { detailsOf } from "./details.ts";
import type { DockerContext } from "./docker-context.ts";
import type { Engine } from "./engine.ts";
import { engineError, statusOf } from "./engine-error.ts";
import { guestIdentity, makeSocketFolder, removeTokenInside, socketFolderIn } from "./guest-socket.ts";
import { startContainer } from "./start-container.ts";

/** Kills a sandbox's container. The container and its files remain. */
export async function killSandbox(docker: DockerContext, id: SandboxId): Promise<void> {
  const engine = await docker.engineFor(detailsOf(await docker.store.read(id)).engineSocket);
  await killContainer(engine, id);
}

/**
 * Ends all processes of a sandbox and restarts its container, with the guest as process 1 and its files unchanged. The
 * record stays `running`: after a crash halfway, the next process finds a dead sandbox. Throws `unsupported` if the
 * container no longer exists.
 */
export async function restartSandbox(
  docker: DockerContext,
  record: SandboxRecord,
  { beforeEnd }: { beforeEnd?: () => Promise<void> } = {},
): Promise<void> {
  const { id } = record;
  const engine = await docker.engineFor(detailsOf(record).engineSocket);
  await beforeEnd?.();
  if (!(await killContainer(engine, id))) {
    throw new CaissonError("unsupported", `the container of sandbox ${id} no longer exists, nor do its files`);
  }
  const sandboxFolder = docker.store.dir(id);
  // Root inside may have left anything in this folder. Nothing runs inside now, and the engine looks up the folder
  // again.
  await rm(socketFolderIn(sandboxFolder), { recursive: true, force: true });
  const guest = await guestIdentity({ facts: await engine.facts(), socketPath: engine.socketPath });
  await makeSocketFolder({ sandboxFolder, guest });
  await startContainer({ engine, id, sandboxFolder });
  const running: SandboxRecord = { ...record, state: "running" };
  await docker.store.write(running);
  const sandbox = await attachSandbox(docker, { record: running, engine, fresh: true });
  await sandbox.detach();
  await removeTokenInside(sandboxFolder);
}

/** Kills a container and waits for its end. Returns false if there is no such container. */
async function killContainer(engine: Engine, id: SandboxId): Promise<boolean> {
  const container = engine.docker.getContainer(containerName(id));
  try {
    await container.kill();
    // Engines answer before the container has ended.
    await container.wait();
    return true;
  } catch (error) {
    if (statusOf(error) === 404) return false;
    // The container is not running.
    if (statusOf(error) === 409) return true;
    throw engineError(error, { what: `ending sandbox ${id}`, socketPath: engine.socketPath });
  }
}
