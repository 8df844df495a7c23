import { rm } from "node:fs/promises";
import { CaissonError } from "../../contract/error.ts";
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

/** The container stays, with its files. */
export async function killSandbox(docker: DockerContext, id: SandboxId): Promise<void> {
  const engine = await docker.engineFor(detailsOf(await docker.store.read(id)).engineSocket);
  await killContainer(engine, id);
}

/**
 * Ends what runs in a sandbox and starts its container again, with the guest as process 1 and the files as they were.
 * The record says `running` throughout: whoever comes after a crash in the middle finds a sandbox that died. Throws
 * `unsupported` for one whose container is gone.
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
    throw new CaissonError("unsupported", `the container of sandbox ${id} is gone, and its files with it`);
  }
  const sandboxFolder = docker.store.dir(id);
  // Root inside may have left anything in it. Nobody is in there now, and the engine looks for the folder anew.
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

/** False when there is no such container. */
async function killContainer(engine: Engine, id: SandboxId): Promise<boolean> {
  const container = engine.docker.getContainer(containerName(id));
  try {
    await container.kill();
    // Engines answer before it is gone.
    await container.wait();
    return true;
  } catch (error) {
    if (statusOf(error) === 404) return false;
    // It does not run.
    if (statusOf(error) === 409) return true;
    throw engineError(error, { what: `ending sandbox ${id}`, socketPath: engine.socketPath });
  }
}
