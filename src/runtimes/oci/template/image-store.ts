import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import type { z } from "zod";
import { CaissonError } from "../../../contract/error/error.ts";
import { lstatOrNull } from "../../../lib/paths.ts";
import { type Descriptor, DockerManifest, ImageDocument, ImageIndex, ImageManifest } from "./image-manifest.ts";

/** Bounds manifests and configurations. Layers are bounded elsewhere. */
const DOCUMENT_BYTES_MAX = 8 * 1024 * 1024;
/** Architectures by Node's names. */
export const ociArchitectures: Record<string, string> = { x64: "amd64", arm64: "arm64" };

/**
 * The files of an image that is not unpacked yet, by their names in its layout: a folder, or an archive extracted to
 * disk.
 */
export interface ImageStore {
  /** The image's name in messages. */
  readonly name: string;
  /** Returns the path of a file on disk, or null. */
  find(name: string): string | null;
}

export interface LayerFile {
  path: string;
  /** The digest of the stored file, or null if the format gives none. */
  digest: string | null;
  /** The digest of the archive inside. */
  diffId: string;
}

/** An image that was understood: its identity and its parts. */
export interface FoundImage {
  /** The manifest's digest or, for a docker archive, which has none, the configuration's. */
  digest: string;
  document: ImageDocument;
  layers: LayerFile[];
}

export function folderStore(folder: string): ImageStore {
  return { name: folder, find: (name) => (lstatOrNull(join(folder, name))?.isFile() ? join(folder, name) : null) };
}

/**
 * Chooses an image of an OCI layout or docker archive: by its tag, or the only one; and among several processors, the
 * one for `arch` (Node's name). Throws `invalid` for an image that is damaged or not an image, `not_found` for an
 * unknown tag, `unsupported` for another processor.
 */
export async function findImage(store: ImageStore, options: { tag: string | null; arch: string }): Promise<FoundImage> {
  const index = store.find("index.json");
  const found =
    index !== null && store.find("oci-layout") !== null ? await ociImage(store, index, options) : await dockerImage(store, options);
  const { document } = found;
  const wanted = ociArchitectures[options.arch] ?? options.arch;
  if (document.os !== "linux" || document.architecture !== wanted)
    throw wrongProcessor(store, [`${document.os}/${document.architecture}`], wanted);
  if (found.layers.length === 0) throw invalid(store, "it has no layers");
  return found;
}

async function ociImage(store: ImageStore, indexPath: string, options: { tag: string | null; arch: string }): Promise<FoundImage> {
  const index = parse(ImageIndex, await readDocument(indexPath, store), store, "index.json");
  const tagged = index.manifests.filter(({ annotations }) => options.tag === null || tagMatches(annotations, options.tag));
  const chosen = await choosePlatform(store, tagged, options);
  const manifest = parse(ImageManifest, await readBlob(store, chosen), store, "its manifest");
  const document = parse(ImageDocument, await readBlob(store, manifest.config), store, "its configuration");
  if (document.rootfs.diff_ids.length !== manifest.layers.length)
    throw invalid(store, "its configuration and its manifest disagree about the layers");
  const layers = manifest.layers.map(
    ({ digest }, index): LayerFile => ({ path: blobPath(store, digest), digest, diffId: document.rootfs.diff_ids[index] ?? "" }),
  );
  return { digest: chosen.digest, document, layers };
}

function tagMatches(annotations: Record<string, string> | undefined, tag: string): boolean {
  return [annotations?.["org.opencontainers.image.ref.name"], annotations?.["io.containerd.image.name"]].some((name) => isNamed(name, tag));
}

/** `12`, `debian:12` and `docker.io/library/debian:12` all name the last of these. */
function isNamed(name: string | undefined, tag: string): boolean {
  return name !== undefined && (name === tag || name.endsWith(`:${tag}`) || name.endsWith(`/${tag}`));
}

/** Follows one list of manifests, the form in which images for several processors are stored. */
async function choosePlatform(
  store: ImageStore,
  candidates: Descriptor[],
  options: { tag: string | null; arch: string },
): Promise<Descriptor> {
  const isList = ({ mediaType }: Descriptor) =>
    mediaType?.includes("image.index") === true || mediaType?.includes("manifest.list") === true;
  const wanted = ociArchitectures[options.arch] ?? options.arch;
  const all: Descriptor[] = [];
  for (const candidate of candidates) {
    if (isList(candidate)) all.push(...parse(ImageIndex, await readBlob(store, candidate), store, "its list of manifests").manifests);
    else all.push(candidate);
  }
  const images = all.filter((one) => one.platform === undefined || one.platform.os !== "unknown");
  const fitting = images.filter(
    (one) => one.platform === undefined || (one.platform.os === "linux" && one.platform.architecture === wanted),
  );
  const distinct = fitting.filter((one, index) => fitting.findIndex(({ digest }) => digest === one.digest) === index);
  const [first, second] = distinct;
  if (first !== undefined && second === undefined && !isList(first)) return first;
  if (first !== undefined && second !== undefined) {
    const tags = candidates.flatMap(({ annotations }) => annotations?.["org.opencontainers.image.ref.name"] ?? []);
    throw new CaissonError("invalid", `${store.name} contains several images`, {
      hint: `Name one of its tags: ${tags.join(", ") || "it has none"}.`,
    });
  }
  if (images.length > 0)
    throw wrongProcessor(
      store,
      images.map(({ platform }) => `${platform?.os}/${platform?.architecture}`),
      wanted,
    );
  if (options.tag === null) throw invalid(store, "its index lists no image");
  throw new CaissonError("not_found", `${store.name} has no image with the tag ${options.tag}`);
}

async function dockerImage(store: ImageStore, options: { tag: string | null }): Promise<FoundImage> {
  const path = store.find("manifest.json");
  if (path === null) throw notAnImage(store.name);
  const manifests = parse(DockerManifest, await readDocument(path, store), store, "manifest.json");
  const { tag } = options;
  const fitting = manifests.filter(({ RepoTags }) => tag === null || (RepoTags ?? []).some((name) => isNamed(name, tag)));
  const [first, second] = fitting;
  if (first === undefined) throw new CaissonError("not_found", `${store.name} has no image with the tag ${tag}`);
  if (second !== undefined) {
    const names = manifests.flatMap(({ RepoTags }) => RepoTags ?? []);
    throw new CaissonError("invalid", `${store.name} contains several images`, {
      hint: `Name one of them after a colon: ${names.join(", ")}.`,
    });
  }
  const text = await readDocument(fileOf(store, first.Config), store);
  const document = parse(ImageDocument, text, store, "its configuration");
  if (document.rootfs.diff_ids.length !== first.Layers.length)
    throw invalid(store, "its configuration and its manifest disagree about the layers");
  const layers = first.Layers.map(
    (name, index): LayerFile => ({ path: fileOf(store, name), digest: null, diffId: document.rootfs.diff_ids[index] ?? "" }),
  );
  return { digest: `sha256:${createHash("sha256").update(text).digest("hex")}`, document, layers };
}

async function readBlob(store: ImageStore, { digest, size }: Descriptor): Promise<Buffer> {
  const data = await readDocument(blobPath(store, digest), store);
  const actual = `sha256:${createHash("sha256").update(data).digest("hex")}`;
  if (actual !== digest || data.length !== size) throw invalid(store, `its part ${digest} is damaged`);
  return data;
}

const blobPath = (store: ImageStore, digest: string) => fileOf(store, `blobs/${digest.replace(":", "/")}`);

function fileOf(store: ImageStore, name: string): string {
  const path = name.split("/").includes("..") ? null : store.find(name);
  if (path === null) throw invalid(store, `its part ${name.slice(0, 200)} is missing`);
  return path;
}

/** Opens a regular file for reading: not through a link, not a FIFO that would block, and not larger than allowed. */
export async function openPlainFile(path: string, bytesMax: number): Promise<FileHandle> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  const stat = await file.stat();
  if (stat.isFile() && stat.size <= bytesMax) return file;
  await file.close();
  throw new CaissonError("invalid", `${path} is not a regular file of at most ${bytesMax} bytes`);
}

async function readDocument(path: string, store: ImageStore): Promise<Buffer> {
  try {
    const file = await openPlainFile(path, DOCUMENT_BYTES_MAX);
    try {
      return await file.readFile();
    } finally {
      await file.close();
    }
  } catch (cause) {
    if (cause instanceof CaissonError) throw cause;
    throw new CaissonError("invalid", `${store.name} is not a usable image: ${path} cannot be read`, { cause });
  }
}

function parse<T>(schema: z.ZodType<T>, data: Buffer, store: ImageStore, what: string): T {
  let value: unknown;
  try {
    value = JSON.parse(data.toString("utf8"));
  } catch (cause) {
    throw new CaissonError("invalid", `${store.name} is not a usable image: ${what} is not JSON`, { cause });
  }
  const outcome = schema.safeParse(value);
  if (outcome.success) return outcome.data;
  throw new CaissonError("invalid", `${store.name} is not a usable image: ${what} has an unexpected format`, { cause: outcome.error });
}

function invalid(store: ImageStore, why: string): CaissonError {
  return new CaissonError("invalid", `${store.name} is not a usable image: ${why}`);
}

function wrongProcessor(store: ImageStore, has: string[], wanted: string): CaissonError {
  return new CaissonError("unsupported", `${store.name} is for ${[...new Set(has)].join(", ")}; this machine runs linux/${wanted}`, {
    hint: `Get the image for this processor, for example with \`docker pull --platform linux/${wanted}\`.`,
  });
}

/** Returns the error for a reference that is not an image, with a hint that says what is accepted. */
export function notAnImage(reference: string): CaissonError {
  return new CaissonError("invalid", `${reference} is not an image`, {
    hint: "Use a folder with a root file system, an OCI layout folder (`/DIR`, `./DIR` or `./DIR:TAG`), an archive made by `docker save` or `skopeo copy … oci-archive:`, or a name in a registry such as `debian:12`.",
  });
}
