import { setTimeout as sleep } from "node:timers/promises";
import { CaissonError } from "../../contract/error/error.ts";
import { ignore } from "../../lib/failures.ts";
import { ifRemoved, type SandboxRecord } from "../../sandbox/store.ts";
import { containerName } from "./container-config.ts";
import { DockerDetails } from "./details.ts";
import type { DockerContext } from "./docker-context.ts";
import type { Engine } from "./engine.ts";
import { engineError, statusOf } from "./engine-error.ts";

const REMOVE_MS = 30_000;
const POLL_MS = 25;

/**
 * Removes everything that belongs to a sandbox, in the engine and on disk, and its record last. Idempotent. Throws
 * `unavailable` if the engine is dead.
 */
export async function removeSandbox(docker: DockerContext, record: SandboxRecord): Promise<void> {
  const details = DockerDetails.safeParse(record.details);
  // For a record of a newer version, the engine for new sandboxes is the best guess.
  const engine = details.success ? await docker.engineFor(details.data.engineSocket) : await docker.engine();
  // If the record no longer exists, another process removed everything, and writing it would bring it back.
  const current = (await ignore(docker.store.read(record.id), "a damaged record is removed as well")) ?? null;
  if (current !== null && current.state !== "completing") await docker.store.write({ ...current, state: "completing" }).catch(ifRemoved);
  await removeContainer(engine, containerName(record.id));
  if (details.success && details.data.ownImage !== null) await removeImage(engine, details.data.ownImage);
  await docker.store.remove(record.id);
}

/** Kills and removes a container. Resolves when it no longer exists, even if another call removes it. */
export async function removeContainer(engine: Engine, name: string): Promise<void> {
  const deadline = Date.now() + REMOVE_MS;
  while (Date.now() < deadline) {
    try {
      // `v`: the volumes that an image declares are created for this sandbox alone.
      await engine.docker.getContainer(name).remove({ force: true, v: true });
      return;
    } catch (error) {
      if (statusOf(error) === 404) return;
      // The engine is already removing it.
      if (statusOf(error) !== 409) throw engineError(error, { what: `removing ${name}`, socketPath: engine.socketPath });
    }
    await sleep(POLL_MS);
  }
  throw new CaissonError("timeout", `the engine did not remove ${name} within ${REMOVE_MS} ms`);
}

/**
 * Removes an image by its name. An image that others are based on only loses its name; the engine removes it with the
 * last of them. Idempotent.
 */
export async function removeImage(engine: Engine, reference: string): Promise<void> {
  try {
    await engine.docker.getImage(reference).remove({ force: true });
  } catch (error) {
    const status = statusOf(error);
    if (status === 404 || status === 409) return;
    throw engineError(error, { what: `removing the image ${reference}`, socketPath: engine.socketPath });
  }
}
