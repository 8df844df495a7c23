import type { ImageInfo } from "dockerode";
import { z } from "zod";
import { CaissonError } from "../../contract/error/error.ts";
import { EnvName } from "../../contract/ids.ts";
import { parseImageReference } from "../../contract/image/image-reference.ts";
import type { Template } from "../../contract/sandbox/sandbox.ts";
import { LOCAL_OWNER } from "../../contract/token/owner.ts";
import { labels } from "./container-config.ts";
import { isWorkUid } from "./details.ts";
import type { Engine } from "./engine.ts";
import { engineError, statusOf } from "./engine-error.ts";

/** The engine image that a sandbox starts from. */
export interface EngineImage {
  id: string;
  env: Record<string, string>;
  /** For a snapshot, the uid that owns its files. Null for other images. */
  workUid: number | null;
}

/** The fields of an image's description that we use. */
const ImageDescription = z.object({
  Id: z.string(),
  Os: z.string().default("linux"),
  RepoTags: z.array(z.string()).nullish(),
  RepoDigests: z.array(z.string()).nullish(),
  Config: z.object({ Env: z.array(z.string()).nullish(), Labels: z.record(z.string(), z.string()).nullish() }).nullish(),
});

/** Matches the engine's image names, ids and digests, and nothing that could be another path of its API. */
const imageName = /^[A-Za-z0-9][A-Za-z0-9._:@-]*(\/[A-Za-z0-9][A-Za-z0-9._:@-]*)*$/;

/** Finds a template's image. Throws `not_found`, `invalid`, `unsupported`, `unavailable`. */
export async function findImage(options: {
  engine: Engine;
  template: Template;
  defaultImage: string | null;
  stateLabel: string;
  /** The owner of the sandbox. Absent for the user of this machine. */
  owner?: string | undefined;
}): Promise<EngineImage> {
  const { engine, template, defaultImage, stateLabel, owner = LOCAL_OWNER } = options;
  switch (template.kind) {
    case "image":
      return inspectImage(engine, template.reference, { byNameAlone: owner !== LOCAL_OWNER });
    case "snapshot": {
      const image = await snapshotImage({ engine, id: template.id, stateLabel });
      if (image === null) throw new CaissonError("not_found", `there is no snapshot ${template.id} in the engine on ${engine.socketPath}`);
      return inspectImage(engine, image);
    }
    case "host":
      if (defaultImage !== null) return inspectImage(engine, defaultImage);
      throw new CaissonError("unsupported", "the docker runtime has no template `host`: a sandbox starts from an engine image", {
        hint: "Name one (`--image debian:12`), set a default image, or use the oci runtime.",
      });
  }
}

/** Returns the id of a snapshot's image, or null if it does not exist. */
export async function snapshotImage(options: { engine: Engine; id: string; stateLabel: string }): Promise<string | null> {
  const images = await imagesOf(options);
  return images.find(({ Labels }) => Labels?.[labels.snapshot] === options.id)?.Id ?? null;
}

/**
 * Returns all images that we created for one state folder. Filters by one label only, because Podman finds no image if
 * it filters by two.
 */
export async function imagesOf(options: { engine: Engine; stateLabel: string }): Promise<ImageInfo[]> {
  const filters = JSON.stringify({ label: [`${labels.state}=${options.stateLabel}`] });
  return options.engine.call("listing snapshots", (docker) => docker.listImages({ filters }));
}

/**
 * Describes an image. With `byNameAlone`, looks only for names in the engine and not for ids, since an id may be that
 * of another owner's snapshot. Throws as `findImage` does.
 */
export async function inspectImage(engine: Engine, reference: string, { byNameAlone = false } = {}): Promise<EngineImage> {
  if (!imageName.test(reference) || (byNameAlone && parseImageReference(reference)?.kind !== "registry")) {
    throw new CaissonError("invalid", `${JSON.stringify(reference.slice(0, 200))} is not an image name`, {
      hint: "Use a name such as debian:12. For folders and archives, use the oci runtime or `docker import`.",
    });
  }
  const what = `looking for the image ${reference}`;
  const described = ImageDescription.parse(
    await engine.docker
      .getImage(reference)
      .inspect()
      .catch((error: unknown) => {
        throw statusOf(error) === 404 ? missing(engine, reference) : engineError(error, { what, socketPath: engine.socketPath });
      }),
  );
  const isOurs = Object.values(labels).some((label) => Object.hasOwn(described.Config?.Labels ?? {}, label));
  const names = [...(described.RepoTags ?? []), ...(described.RepoDigests ?? [])];
  if (byNameAlone && (isOurs || !names.some((name) => isNamed(name, reference)))) throw missing(engine, reference);
  if (described.Os !== "linux") throw new CaissonError("invalid", `the image ${reference} is for ${described.Os}, not Linux`);
  const uid = Number(described.Config?.Labels?.[labels.workUid]);
  return { id: described.Id, env: envOf(described.Config?.Env ?? []), workUid: isWorkUid(uid) ? uid : null };
}

/** `debian` means `debian:latest`, which some engines call `docker.io/library/debian:latest`. */
export function isNamed(name: string, reference: string): boolean {
  const hasTag = /[:@][^/]*$/.test(reference);
  const whole = hasTag ? reference : `${reference}:latest`;
  return name === whole || name.endsWith(`/${whole}`);
}

function missing(engine: Engine, reference: string): CaissonError {
  const docker = `docker -H unix://${engine.socketPath}`;
  return new CaissonError("not_found", `the engine on ${engine.socketPath} has no image ${reference}`, {
    hint: `Run \`${docker} pull ${reference}\`, or without a registry \`${docker} load < image.tar\` or \`${docker} import rootfs.tar ${reference}\`.`,
  });
}

/**
 * Variables that we do not take from an image: those that describe its user, which the sandbox does not use, and
 * `__proto__`.
 */
const notTaken = new Set(["HOME", "USER", "LOGNAME", "__proto__"]);
function envOf(lines: readonly string[]): Record<string, string> {
  const env: Record<string, string> = {};
  for (const line of lines) {
    const at = line.indexOf("=");
    const name = line.slice(0, at);
    if (at > 0 && EnvName.safeParse(name).success && !notTaken.has(name)) env[name] = line.slice(at + 1);
  }
  return env;
}
