import { CaissonError } from "../../contract/error/error.ts";
import { SandboxId } from "../../contract/ids.ts";
import { ignore } from "../../lib/failures.ts";
import { isOrphan, type SandboxRecord } from "../../sandbox/store.ts";
import { containerName, labels } from "./container-config.ts";
import { runtimeName } from "./details.ts";
import type { DockerContext } from "./docker-context.ts";
import type { Engine } from "./engine.ts";
import { imagesOf } from "./image.ts";
import { sweepPoints } from "./points.ts";
import { removeContainer, removeImage, removeSandbox } from "./remove-sandbox.ts";

/** Removes what dead creators left. If the engine does not answer, the next sweep retries. */
export async function sweep(docker: DockerContext): Promise<SandboxId[]> {
  const removed = new Set<SandboxId>();
  const { records } = await docker.store.list();
  for (const record of records) {
    if (record.runtime !== runtimeName || !isLeft(docker, record)) continue;
    if (await isReached(() => removeSandbox(docker, record))) removed.add(record.id);
  }
  const engine = (await ignore(docker.engine(), "the next sweep retries")) ?? null;
  if (engine !== null) await isReached(() => removeUnrecorded(docker, engine, removed));
  return [...removed];
}

/** Removes everything in the engine that carries this sandbox's id. */
export async function discard(docker: DockerContext, id: SandboxId): Promise<void> {
  const engine = await docker.engine();
  await removeContainer(engine, containerName(id));
  for (const { Id, Labels, RepoTags } of await imagesOf({ engine, stateLabel: docker.stateLabel }))
    if (Labels?.[labels.onlyFor] === id) await removeImage(engine, RepoTags?.[0] ?? Id);
}

/**
 * Whether a sandbox is a leftover: its creator died and did not keep it, or its creation or removal was interrupted.
 */
function isLeft(docker: DockerContext, record: SandboxRecord): boolean {
  if (isOrphan(record)) return true;
  const unfinished = record.state === "creating" || record.state === "completing";
  return unfinished && !docker.store.isHolderAlive(record.owner);
}

/**
 * Removes containers and images that have our label but no record: the state folder was deleted or restored from a
 * copy.
 */
async function removeUnrecorded(docker: DockerContext, engine: Engine, removed: Set<SandboxId>): Promise<void> {
  const filters = { label: [`${labels.state}=${docker.stateLabel}`] };
  const containers = await engine.call("looking for leftovers", (docker) => docker.listContainers({ all: true, filters }));
  const images = await imagesOf({ engine, stateLabel: docker.stateLabel });
  // The record is written before the container is created, so a container without a record is a leftover.
  for (const { Labels } of containers) {
    const id = SandboxId.safeParse(Labels[labels.sandbox]);
    if (!id.success || (await isRecorded(docker, id.data))) continue;
    await removeContainer(engine, containerName(id.data));
    removed.add(id.data);
  }
  for (const { Id, Labels, RepoTags, Created } of images) {
    const id = SandboxId.safeParse(Labels?.[labels.onlyFor]);
    // A fork's image exists shortly before the fork's record.
    const fresh = Date.now() / 1000 - Created < docker.freshImageSeconds;
    if (!id.success || fresh || (await isRecorded(docker, id.data))) continue;
    await removeImage(engine, RepoTags?.[0] ?? Id);
  }
  await sweepPoints(docker, engine, images);
}

async function isRecorded(docker: DockerContext, id: SandboxId): Promise<boolean> {
  try {
    await docker.store.read(id);
    return true;
  } catch (error) {
    // A damaged record is for a person to examine, not proof that nothing exists.
    return !(error instanceof CaissonError && error.code === "not_found");
  }
}

async function isReached(work: () => Promise<void>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    if (error instanceof CaissonError && error.code === "unavailable") return false;
    throw error;
  }
}
