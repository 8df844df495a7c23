import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type Docker from "dockerode";
import type { ImageInfo } from "dockerode";
import { CaissonError } from "../../contract/error/error.ts";
import { type SandboxId, SnapshotId } from "../../contract/ids.ts";
import { ABSENT, ifErrno } from "../../lib/failures.ts";
import { newId } from "../../lib/new-id.ts";
import { showBytes } from "../../lib/quantity.ts";
import type { SnapshotPoints, TakenPoint } from "../../sandbox/machine-points.ts";
import { containerName, labels } from "./container-config.ts";
import { detailsOf } from "./details.ts";
import type { DockerContext } from "./docker-context.ts";
import type { Engine } from "./engine.ts";
import { engineError, statusOf } from "./engine-error.ts";
import { imagesOf } from "./image.ts";
import { commit, ownBytes } from "./snapshots.ts";
import { countChanged, upperState } from "./upper-state.ts";

/** Names of images in this repository are references: the engine removes an image with its last name. */
const repository = "caisson-point";

/** Creates the points of sessions in an engine: images, whose names count who keeps them. */
export function dockerPoints(docker: DockerContext): SnapshotPoints {
  return {
    async take(layer, options) {
      const record = await docker.store.read(options.sandbox);
      const { engineSocket, workUid, startedMs } = detailsOf(record);
      const engine = await docker.engineFor(engineSocket);
      await noteHolder(docker, layer);
      return await takePoint(docker, { engine, layer, workUid, startedMs, ...options });
    },
    async keep(layer, id) {
      const engine = await docker.engine();
      const image = await imageOf(docker, engine, id);
      if (image === null)
        throw new CaissonError("not_found", `the files of the point ${id} no longer exist`, {
          hint: "List the points that exist: caisson snapshot du SESSION",
        });
      await noteHolder(docker, layer);
      await engine.call(`keeping ${id}`, (api) => api.getImage(image.Id).tag({ repo: repository, tag: tagOf(layer, id) }));
    },
    async remove(layer, id) {
      await removeName(await docker.engine(), `${repository}:${tagOf(layer, id)}`);
    },
    async list(layer) {
      // A session that never had a point needs no engine.
      if (!existsSync(holderFile(docker, layer))) return [];
      const images = await imagesOf({ engine: await docker.engine(), stateLabel: docker.stateLabel });
      return images.flatMap((image) => referencesOf(image).flatMap(({ id, key }) => (key === keyOf(layer) ? [id] : [])));
    },
  };
}

interface Taking {
  engine: Engine;
  layer: string;
  sandbox: SandboxId;
  workUid: number;
  startedMs: number | null;
  last: SnapshotId | null;
  base: SnapshotId | null;
  bytesMax: number;
}

async function takePoint(docker: DockerContext, taking: Taking): Promise<TakenPoint> {
  const { engine, layer, sandbox } = taking;
  const container = await inspectContainer(engine, sandbox);
  const upper = await upperState(container.GraphDriver?.Data?.UpperDir ?? null);
  const before = await stateBefore(docker, container, taking);
  const files = upper === null ? await countListed(engine, sandbox) : countChanged(upper, before.atMs);
  const isSame = before.digest === null ? before.isKnown && files === 0 : before.digest === upper?.digest;
  const unchanged: TakenPoint = { id: before.id, files: 0, bytes: 0, isNew: false };
  if (isSame) return unchanged;
  await refuseLarge(engine, taking);
  const id = newId("sn");
  const tag = tagOf(layer, id);
  const point = `${Date.now()}-${upper?.digest ?? ""}`;
  const own = { [labels.snapshot]: id, [labels.sandbox]: sandbox, [labels.point]: point };
  docker.context.crashpoint?.("point.committed:before");
  await commit({ engine, id: sandbox, workUid: taking.workUid, stateLabel: docker.stateLabel }, { repository, tag, own });
  docker.context.crashpoint?.("point.committed:after");
  const name = `${repository}:${tag}`;
  if (before.image !== null && (await haveSameFiles(engine, [before.image, name]))) {
    await removeName(engine, name);
    return unchanged;
  }
  return { id, files: Math.max(1, files), bytes: await ownBytes(engine, name), isNew: true };
}

/** The files to compare with: the last point of this sandbox, or what the sandbox started from. */
interface StateBefore {
  id: SnapshotId | null;
  image: string | null;
  /** Whether it is known that the sandbox had these files at this time. */
  isKnown: boolean;
  atMs: number | null;
  /** Of the writable layer at that time; null for an untouched one. */
  digest: string | null;
}

async function stateBefore(docker: DockerContext, container: InspectedContainer, taking: Taking): Promise<StateBefore> {
  const { engine, sandbox, last, base, startedMs } = taking;
  const lastImage = last === null ? null : await imageOf(docker, engine, last);
  if (last !== null && lastImage?.Labels?.[labels.sandbox] === sandbox) {
    const [, ms = "", digest = ""] = /^(\d+)-([0-9a-f]*)$/.exec(lastImage.Labels[labels.point] ?? "") ?? [];
    return { id: last, image: lastImage.Id, isKnown: true, atMs: Number(ms), digest };
  }
  const baseImage = base === null ? null : await imageOf(docker, engine, base);
  const isKnown = base === null || baseImage?.Id === container.Image;
  return { id: base, image: baseImage?.Id ?? null, isKnown: isKnown && startedMs !== null, atMs: startedMs, digest: null };
}

async function refuseLarge(engine: Engine, { sandbox, bytesMax }: Taking): Promise<void> {
  const { SizeRw = 0 } = await inspectContainer(engine, sandbox, { size: true });
  if (SizeRw > bytesMax)
    throw new CaissonError("too_large", `the sandbox's changes cannot be stored: they take more than ${showBytes(bytesMax)}`);
}

async function inspectContainer(engine: Engine, sandbox: SandboxId, how: { size?: true } = {}): Promise<InspectedContainer> {
  try {
    const options = how as Docker.ContainerInspectOptions;
    return (await engine.docker.getContainer(containerName(sandbox)).inspect(options)) as InspectedContainer;
  } catch (error) {
    if (statusOf(error) === 404) throw new CaissonError("not_found", `sandbox ${sandbox} no longer exists`, { cause: error });
    throw engineError(error, { what: `looking at the changes of sandbox ${sandbox}`, socketPath: engine.socketPath });
  }
}

/** Counts what the engine lists as changed since the container was created: for layers that we cannot read. */
async function countListed(engine: Engine, sandbox: SandboxId): Promise<number> {
  const what = `listing the changes of sandbox ${sandbox}`;
  const changes: unknown = await engine.call(what, (api) => api.getContainer(containerName(sandbox)).changes());
  return Array.isArray(changes) ? changes.length : 0;
}

/** The fields of a container's description that we use. */
interface InspectedContainer {
  Image: string;
  SizeRw?: number;
  GraphDriver?: { Data?: { UpperDir?: string } | null } | null;
}

/** Layers are named by their content, so equal lists of layers are equal files. */
async function haveSameFiles(engine: Engine, images: readonly string[]): Promise<boolean> {
  const [one, other] = await Promise.all(
    images.map(async (image) => {
      const { RootFS } = await engine.call("comparing points", (api) => api.getImage(image).inspect());
      return JSON.stringify(RootFS.Layers ?? []);
    }),
  );
  return one === other;
}

async function imageOf(docker: DockerContext, engine: Engine, id: SnapshotId): Promise<ImageInfo | null> {
  const images = await imagesOf({ engine, stateLabel: docker.stateLabel });
  return images.find(({ Labels }) => Labels?.[labels.snapshot] === id) ?? null;
}

const keyOf = (layer: string) => createHash("sha256").update(layer).digest("hex").slice(0, 24);
const tagOf = (layer: string, id: SnapshotId) => `${id}.${keyOf(layer)}`;

function referencesOf({ RepoTags }: Pick<ImageInfo, "RepoTags">): { name: string; id: SnapshotId; key: string }[] {
  return (RepoTags ?? []).flatMap((name) => {
    const [, tag, key] = /(?:^|\/)caisson-point:(sn_[a-z0-9]+)\.([0-9a-f]{24})$/.exec(name) ?? [];
    const id = SnapshotId.safeParse(tag);
    return id.success && key !== undefined ? [{ name, id: id.data, key }] : [];
  });
}

/** Removes a name of an image. An image that a container uses stays until the container is removed. */
async function removeName(engine: Engine, name: string): Promise<void> {
  try {
    await engine.docker.getImage(name).remove();
  } catch (error) {
    const status = statusOf(error);
    if (status === 404) return;
    if (status === 409) return await forceName(engine, name);
    throw engineError(error, { what: `removing the point ${name}`, socketPath: engine.socketPath });
  }
}

/** Takes the name from an image that a container uses; the image then goes with the next sweep. */
async function forceName(engine: Engine, name: string): Promise<void> {
  try {
    await engine.docker.getImage(name).remove({ force: true });
  } catch (error) {
    // A running container holds it. The session still lists it, and tries again.
    if (statusOf(error) === 404 || statusOf(error) === 409) return;
    throw engineError(error, { what: `removing the point ${name}`, socketPath: engine.socketPath });
  }
}

const holdersDir = (docker: DockerContext) => join(docker.context.stateDir, "docker", "holders");
const holderFile = (docker: DockerContext, layer: string) => join(holdersDir(docker), keyOf(layer));

/** Notes who keeps points, before there is one: a sweep removes those of holders that no longer exist. */
async function noteHolder(docker: DockerContext, layer: string): Promise<void> {
  const path = holderFile(docker, layer);
  if (existsSync(path)) return;
  await mkdir(holdersDir(docker), { recursive: true, mode: 0o700 });
  const draft = `${path}.${process.pid}.tmp`;
  await writeFile(draft, layer, { mode: 0o600 });
  await rename(draft, path);
}

/** Removes points whose sessions no longer exist, and images that lost their last name while they were used. */
export async function sweepPoints(docker: DockerContext, engine: Engine, images: readonly ImageInfo[]): Promise<void> {
  const holders = new Map<string, boolean>();
  for (const key of await ifErrno(readdir(holdersDir(docker)), ABSENT, [])) {
    const layer = await ifErrno(readFile(join(holdersDir(docker), key), "utf8"), ABSENT, "");
    holders.set(key, layer !== "" && existsSync(layer));
  }
  for (const image of images) {
    if (!image.Labels?.[labels.snapshot] || Date.now() / 1000 - image.Created < docker.freshImageSeconds) continue;
    const names = (image.RepoTags ?? []).filter((name) => name !== "<none>:<none>");
    for (const { name, key } of referencesOf(image)) if (holders.get(key) !== true) await removeName(engine, name);
    if (names.length === 0) await removeName(engine, image.Id);
  }
  for (const [key, exists] of holders) if (!exists) await rm(join(holdersDir(docker), key), { force: true });
}
