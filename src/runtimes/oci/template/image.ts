import { createHash } from "node:crypto";
import { lstat, mkdir, open, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { CaissonError } from "../../../contract/error/error.ts";
import type { ImageView } from "../../../contract/image/image-verbs.ts";
import { LOCAL_OWNER } from "../../../contract/token/owner.ts";
import { ABSENT, ifErrno, jsonOrNull } from "../../../lib/failures.ts";
import { createDiskShares, type DiskShares } from "../../../sandbox/disk-shares.ts";
import { archiveStore } from "./archive-store.ts";
import { builtImages } from "./built-images.ts";
import { Digest, emptyImageConfig, ImageConfig, imageConfigOf } from "./image-manifest.ts";
import { checkRootProcessor, type ImageSource, imageSource } from "./image-source.ts";
import { type FoundImage, findImage, folderStore, type ImageStore, ociArchitectures } from "./image-store.ts";
import { type FetchImageFor, fetchImage } from "./registry.ts";
import { runProgram } from "./run-program.ts";
import { createTemplateCache, type TemplateCache } from "./template-cache.ts";
import { checkRoot } from "./unpack-image.ts";
import { type RunInside, unpackInProcess } from "./unpack-process.ts";

export interface ImageLimits {
  bytesMax: number;
  entriesMax: number;
  fetchTimeoutMs: number;
  unpackTimeoutMs: number;
}

/** Default bounds on what an image may unpack to, and how long that may take. */
export const defaultImageLimits: ImageLimits = {
  bytesMax: 32 * 1024 ** 3,
  entriesMax: 2_000_000,
  fetchTimeoutMs: 30 * 60_000,
  unpackTimeoutMs: 30 * 60_000,
};

const ImageRecordText = z
  .string()
  .transform((text, context) => {
    const value = jsonOrNull(text);
    if (value !== null) return value;
    context.addIssue("not JSON");
    return z.NEVER;
  })
  .pipe(z.object({ digest: Digest, config: ImageConfig }));

export interface ImageTemplate {
  /** The image's digest, or null for a folder that is used in place. */
  digest: string | null;
  /**
   * The root file system, for a read-only layer. On disk it has the image's own ids; a folder that is used in place
   * keeps the ids that it has.
   */
  rootfsDir: string;
  config: ImageConfig;
}

export interface ResolveImageOptions {
  /** The name of an image built here, a root file system folder, an OCI layout, an archive, or a name in a registry. */
  reference: string;
  stateDir: string;
  /** Node's name for the processor. */
  arch?: string;
  /** For skopeo: PATH, HOME, proxies. */
  env?: Readonly<Record<string, string>>;
  /** Runs a program as root of a user namespace, if ids can only be set there (rootless). */
  inside?: RunInside | undefined;
  /** Removes a tree with files of such ids. */
  remove?: (path: string) => Promise<void>;
  /** False if only one id is available, which then owns all files. */
  keepOwners?: boolean;
  /**
   * The owner that requests the image, and whose share of the disk it counts toward. Absent for the user of this
   * machine.
   */
  owner?: string | undefined;
  /** If absent, images are fetched only for the user of this machine. */
  fetchFor?: FetchImageFor | undefined;
  /** Asks the registry even if the name was fetched before. */
  refresh?: boolean;
  limits?: Partial<ImageLimits>;
  signal?: AbortSignal | undefined;
  disk?: DiskShares | undefined;
}

/**
 * Finds an image, first among those built here, and unpacks it under `<stateDir>/templates`, once for each digest. Two
 * processes that want the same image at the same time both get it. The result never changes. A name in a registry is
 * fetched once. Throws `not_found`, `invalid` (not an image, damaged), `unsupported` (another processor), `unsafe`
 * (tricks in the archive), `too_large`, `no_space`, `unavailable` (no skopeo, no answer), `cancelled`, `timeout`.
 */
export async function resolveImage(options: ResolveImageOptions): Promise<ImageTemplate> {
  const built = await builtImages(options.stateDir).find(options.reference);
  if (built !== null) return builtTemplate(options.stateDir, built);
  const source = imageSource(options.reference);
  const arch = options.arch ?? process.arch;
  if (source.kind === "rootfs") {
    checkRoot(source.folder);
    checkRootProcessor(source.folder, arch);
    return { digest: null, rootfsDir: source.folder, config: emptyImageConfig };
  }
  const cache = createTemplateCache({ stateDir: options.stateDir, ...(options.remove === undefined ? {} : { remove: options.remove }) });
  if (source.kind === "layout") {
    const found = await findImage(folderStore(source.folder), { tag: source.tag, arch });
    return (
      (await findCached(cache, found.digest)) ??
      (await withDraft(cache, async (draft) => (await unpackFound({ options, cache, found, draft })).template))
    );
  }
  const key = await referenceKey(source, { arch, owner: options.owner });
  const known = options.refresh === true ? null : await knownDigest(cache, key);
  const ready = known === null ? null : await findCached(cache, known);
  if (ready !== null) return ready;
  return withDraft(cache, async (draft) => {
    const found = await findImage(await gather(source, options, draft), { tag: source.kind === "archive" ? source.tag : null, arch });
    const template = (await findCached(cache, found.digest)) ?? (await unpackFound({ options, cache, found, draft })).template;
    await rememberDigest(cache, key, found.digest);
    return template;
  });
}

/**
 * Identifies the files that an image has now, without unpacking it: two images with the same identity have the same
 * files. Returns null for a name in a registry that was not fetched yet, and for an archive that was not read yet.
 * Throws what `resolveImage` throws for a missing or damaged image.
 */
export async function imageIdentity(options: Pick<ResolveImageOptions, "reference" | "stateDir" | "owner">): Promise<string | null> {
  const built = await builtImages(options.stateDir).find(options.reference);
  if (built !== null) return built.digest;
  const source = imageSource(options.reference);
  if (source.kind === "rootfs")
    return JSON.stringify([source.folder, await Promise.all(rootStamps.map((path) => stampOf(source.folder, path)))]);
  if (source.kind === "layout") return (await findImage(folderStore(source.folder), { tag: source.tag, arch: process.arch })).digest;
  return await knownDigest(createTemplateCache(options), await referenceKey(source, { arch: process.arch, owner: options.owner }));
}

/** Paths that change when packages or top folders do: a folder that is used in place has no digest. */
const rootStamps = ["", "etc", "usr", "etc/os-release", "var/lib/dpkg/status", "lib/apk/db/installed", "var/lib/rpm"];

async function stampOf(folder: string, path: string): Promise<string | null> {
  const stats = await ifErrno(lstat(join(folder, path), { bigint: true }), ABSENT, null);
  return stats === null ? null : `${stats.dev} ${stats.ino} ${stats.size} ${stats.mtimeNs} ${stats.ctimeNs}`;
}

async function builtTemplate(stateDir: string, image: ImageView): Promise<ImageTemplate> {
  const template = await findCached(createTemplateCache({ stateDir }), image.digest);
  if (template !== null) return template;
  throw new CaissonError("not_found", `the files of image ${image.name} no longer exist`, {
    hint: "Build it again: `caisson image build`.",
  });
}

/** Returns the template of this digest, or null. One with an unreadable record counts as missing, and is never used. */
async function findCached(cache: TemplateCache, digest: string): Promise<ImageTemplate | null> {
  const folder = await cache.use(templateName(digest));
  if (folder === null) return null;
  const text = await ifErrno(readFile(join(folder, "image.json"), "utf8"), ABSENT, null);
  const record = ImageRecordText.safeParse(text);
  return record.success ? { ...record.data, rootfsDir: join(folder, "rootfs") } : null;
}

const IMAGE_PREFIX = "image-";
export const templateName = (digest: string) => `${IMAGE_PREFIX}${digest.replace("sha256:", "")}`;
/** Returns whether a template is an unpacked image. */
export const isImage = (template: string) => template.startsWith(IMAGE_PREFIX);

async function withDraft<T>(cache: TemplateCache, work: (draft: string) => Promise<T>): Promise<T> {
  const draft = await cache.draft();
  try {
    return await work(draft);
  } finally {
    await cache.discard(draft);
  }
}

/** Brings the parts of an archive or of an image in a registry into the draft. */
async function gather(
  source: Exclude<ImageSource, { kind: "rootfs" | "layout" }>,
  options: ResolveImageOptions,
  draft: string,
): Promise<ImageStore> {
  const limits = { ...defaultImageLimits, ...options.limits };
  const folder = join(draft, "parts");
  if (source.kind === "archive") {
    await mkdir(folder, { mode: 0o700 });
    return archiveStore({ archive: source.path, folder, bytesMax: limits.bytesMax });
  }
  const { owner = LOCAL_OWNER } = options;
  if (owner !== LOCAL_OWNER) {
    if (options.fetchFor === undefined) throw new CaissonError("denied", "only the machine's user may fetch images");
    const architecture = ociArchitectures[options.arch ?? process.arch] ?? process.arch;
    const { bytesMax, fetchTimeoutMs: timeoutMs } = limits;
    const { fetchFor } = options;
    const request = { reference: source.reference, layout: folder, owner, architecture, bytesMax, timeoutMs };
    await whileRoom(options, { measured: folder }, (signal) => fetchFor({ ...request, signal }));
    return { ...folderStore(folder), name: source.reference };
  }
  const env = options.env ?? { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" };
  const { reference } = source;
  await whileRoom(options, { measured: folder }, (signal) =>
    fetchImage({ reference, layout: folder, env, timeoutMs: limits.fetchTimeoutMs, signal }),
  );
  return { ...folderStore(folder), name: source.reference };
}

/** Creates the template of an image whose parts are in the draft, and returns the size of its files. */
export async function unpackFound(work: {
  options: ResolveImageOptions;
  cache: TemplateCache;
  found: FoundImage;
  draft: string;
}): Promise<{ template: ImageTemplate; bytes: number }> {
  const { options, cache, found, draft } = work;
  const limits = { ...defaultImageLimits, ...options.limits };
  const image = join(draft, "image");
  await mkdir(image, { mode: 0o700 });
  const keepOwners = options.keepOwners ?? (options.inside !== undefined || process.getuid?.() === 0);
  const { disk = createDiskShares(options), owner } = options;
  const left = owner === undefined ? limits.bytesMax : await disk.countBytesLeft(owner);
  const { bytes } = await whileRoom(options, {}, (signal) =>
    unpackInProcess({
      request: {
        layers: found.layers,
        target: join(image, "rootfs"),
        keepOwners,
        bytesMax: Math.min(limits.bytesMax, left),
        entriesMax: limits.entriesMax,
      },
      folder: draft,
      timeoutMs: limits.unpackTimeoutMs,
      inside: options.inside,
      signal,
    }),
  );
  const record = { digest: found.digest, config: imageConfigOf(found.document) };
  await writeDurably(join(image, "image.json"), JSON.stringify({ ...record, bytes, ...(owner !== undefined && { owner }) }));
  await flush(image);
  const folder = await cache.publish(image, templateName(found.digest));
  return { template: { ...record, rootfsDir: join(folder, "rootfs") }, bytes };
}

/** Fetches or unpacks while the disk and the owner's share of it have room. */
async function whileRoom<Result>(
  { stateDir, disk = createDiskShares({ stateDir }), owner, signal }: ResolveImageOptions,
  measured: { measured?: string },
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  return await disk.write({ what: "the image", owner, signal, ...measured }, (write) => work(write.signal));
}

/**
 * A power cut must not leave a template that looks complete but has empty files. Without `sync`, the kernel writes in
 * its own time.
 */
async function flush(folder: string): Promise<void> {
  const env = { PATH: "/usr/bin:/bin" };
  await runProgram({ argv: ["sync", "-f", "--", folder], env, timeoutMs: 600_000, missing: { hint: "" } }).catch((cause: CaissonError) => {
    if (cause.code !== "unavailable") throw cause;
  });
}

/**
 * Returns the key under which a name or an archive is looked up; for an archive it includes the file's state. The
 * machine's user and other owners have different keys for a name: the user may have fetched it with a password, but
 * others fetch without one.
 */
async function referenceKey(
  source: Exclude<ImageSource, { kind: "rootfs" | "layout" }>,
  { arch, owner = LOCAL_OWNER }: { arch: string; owner?: string | undefined },
): Promise<string> {
  const hash = createHash("sha256").update(`${source.kind} ${arch} ${owner === LOCAL_OWNER ? "" : "public "}`);
  if (source.kind === "registry") return hash.update(source.reference).digest("hex");
  const { dev, ino, size, mtimeNs, ctimeNs } = await stat(source.path, { bigint: true });
  return hash.update(`${source.tag ?? ""} ${source.path}\0${dev} ${ino} ${size} ${mtimeNs} ${ctimeNs}`).digest("hex");
}

const referencePath = (cache: TemplateCache, key: string) => join(cache.folder, "references", key);

async function knownDigest(cache: TemplateCache, key: string): Promise<string | null> {
  const text = await ifErrno(readFile(referencePath(cache, key), "utf8"), ABSENT, "");
  return Digest.safeParse(text).data ?? null;
}

async function rememberDigest(cache: TemplateCache, key: string, digest: string): Promise<void> {
  const path = referencePath(cache, key);
  await mkdir(join(cache.folder, "references"), { recursive: true, mode: 0o700 });
  const draft = `${path}.${process.pid}`;
  await writeFile(draft, digest, { mode: 0o600 });
  await rename(draft, path).catch(async (cause) => {
    await rm(draft, { force: true });
    throw new CaissonError("internal", `could not record an image's name in ${path}`, { cause });
  });
}

async function writeDurably(path: string, content: string): Promise<void> {
  const file = await open(path, "wx", 0o600);
  try {
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
}
