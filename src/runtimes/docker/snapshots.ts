import { CaissonError } from "../../contract/error/error.ts";
import { SandboxId, SnapshotId } from "../../contract/ids.ts";
import { defined } from "../../lib/defined.ts";
import { newId } from "../../lib/new-id.ts";
import type { SnapshotInfo } from "../../sandbox/runtime.ts";
import { containerName, labels } from "./container-config.ts";
import type { Engine } from "./engine.ts";
import { engineError, statusOf } from "./engine-error.ts";
import { imagesOf, isNamed, snapshotImage } from "./image.ts";

const repository = "caisson-snapshot";
const forkRepository = "caisson-fork";
const NAME_MAX = 256;

export interface Commit {
  engine: Engine;
  id: SandboxId;
  workUid: number;
  stateLabel: string;
}

/** Freezes a sandbox and stores its files as an image. Throws `no_space`, or `invalid` for the name. */
export async function commitSnapshot(options: Commit & { name: string | null; owner: string | undefined }): Promise<SnapshotId> {
  const { name, id, owner } = options;
  if (name !== null && (name.length === 0 || name.length > NAME_MAX)) {
    throw new CaissonError("invalid", `a snapshot's name must have 1 to ${NAME_MAX} characters`);
  }
  const snapshot = newId("sn");
  await commit(options, {
    repository,
    tag: snapshot,
    own: {
      [labels.snapshot]: snapshot,
      [labels.sandbox]: id,
      ...(name !== null && { [labels.name]: encodeName(name) }),
      ...(owner !== undefined && { [labels.owner]: owner }),
    },
  });
  return snapshot;
}

/** Creates an image that lives as long as the fork that starts from it. Returns its name. */
export async function commitFork(options: Commit & { forkId: SandboxId }): Promise<string> {
  const { forkId } = options;
  await commit(options, { repository: forkRepository, tag: forkId, own: { [labels.onlyFor]: forkId } });
  return `${forkRepository}:${forkId}`;
}

/** Freezes a sandbox and stores its files as an image. Throws `lost`, `no_space`. */
export async function commit(
  options: Commit,
  image: { repository: string; tag: string; own: Readonly<Record<string, string>> },
): Promise<void> {
  const { engine, id, workUid, stateLabel } = options;
  // We set every label: an image inherits those of its base, so a fork of a restored snapshot would get the snapshot's.
  const none = {
    [labels.snapshot]: "",
    [labels.onlyFor]: "",
    [labels.name]: "",
    [labels.owner]: "",
    [labels.sandbox]: "",
    [labels.point]: "",
  };
  const Labels = { ...none, [labels.state]: stateLabel, [labels.workUid]: String(workUid), ...image.own };
  const changes = Object.entries(Labels).map(([key, value]) => `LABEL ${key}=${JSON.stringify(value)}`);
  try {
    await engine.docker
      .getContainer(containerName(id))
      .commit({ repo: image.repository, tag: image.tag, pause: true, changes: changes.join("\n") });
  } catch (error) {
    if (statusOf(error) === 404) throw new CaissonError("lost", `sandbox ${id} no longer exists`, { cause: error });
    if (error instanceof Error && error.message.includes("max depth exceeded")) {
      throw new CaissonError("unsupported", `the files of sandbox ${id} cannot be stored: the engine allows no further layers`, {
        hint: "Apply the changes, and continue in a new session: with docker, each turn of a session adds a layer.",
        cause: error,
      });
    }
    throw engineError(error, { what: `storing the files of sandbox ${id}`, socketPath: engine.socketPath });
  }
}

export async function listSnapshots(options: { engine: Engine; stateLabel: string }): Promise<SnapshotInfo[]> {
  const { engine } = options;
  const found: SnapshotInfo[] = [];
  for (const image of await imagesOf(options)) {
    const id = SnapshotId.safeParse(image.Labels?.[labels.snapshot]);
    const sandbox = SandboxId.safeParse(image.Labels?.[labels.sandbox]);
    if (!id.success || !sandbox.success) continue;
    // Others are points of sessions, or exist only for the sessions that keep them.
    if (!(image.RepoTags ?? []).some((tag) => isNamed(tag, `${repository}:${id.data}`))) continue;
    const name = decodeName(image.Labels?.[labels.name] ?? "");
    const createdAt = new Date(image.Created * 1000).toISOString();
    const owner = image.Labels?.[labels.owner] || undefined;
    const about = { name: name === "" ? null : name, sandbox: sandbox.data, createdAt, ...defined({ owner }) };
    found.push({ id: id.data, ...about, bytes: await ownBytes(engine, image.Id) });
  }
  return found;
}

/** Returns the size of the top layer: what the snapshot adds to its sandbox's base. */
export async function ownBytes(engine: Engine, image: string): Promise<number> {
  const history: unknown = await engine.call("reading a snapshot's size", (docker) => docker.getImage(image).history());
  const [top] = Array.isArray(history) ? history : [];
  return typeof top?.Size === "number" ? top.Size : 0;
}

/** Removes a snapshot. Throws `not_found`, or `conflict` while a sandbox that started from it exists. */
export async function removeSnapshot(options: { engine: Engine; id: SnapshotId; stateLabel: string }): Promise<void> {
  const { engine, id } = options;
  if ((await snapshotImage(options)) === null) throw new CaissonError("not_found", `there is no snapshot ${id}`);
  try {
    await engine.docker.getImage(`${repository}:${id}`).remove();
  } catch (error) {
    if (statusOf(error) === 404) return;
    if (statusOf(error) === 409) {
      throw new CaissonError("conflict", `snapshot ${id} is in use by a sandbox that started from it`, {
        hint: "Remove that sandbox first.",
        cause: error,
      });
    }
    throw engineError(error, { what: `removing snapshot ${id}`, socketPath: engine.socketPath });
  }
}

/** Labels are passed in Dockerfile syntax, where quotes and dollar signs in a name would have a meaning. */
const encodeName = (name: string) => Buffer.from(name).toString("base64url");
const decodeName = (label: string) => Buffer.from(label, "base64url").toString();
