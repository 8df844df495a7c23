import { createHash } from "node:crypto";
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isErrno } from "../../../lib/failures.ts";
import { lstatOrNull } from "../../../lib/paths.ts";
import { temporaryName } from "../../../lib/replace-file.ts";

/** The media types of an OCI image. */
export const mediaTypes = {
  manifest: "application/vnd.oci.image.manifest.v1+json",
  config: "application/vnd.oci.image.config.v1+json",
  layer: "application/vnd.oci.image.layer.v1.tar",
} as const;

export const ociArchitecture = () => ({ x64: "amd64", arm64: "arm64" })[process.arch as string] ?? process.arch;

export interface Blob {
  digest: string;
  size: number;
}

export const blobOf = (data: Uint8Array): Blob => ({
  digest: `sha256:${createHash("sha256").update(data).digest("hex")}`,
  size: data.length,
});

/** Returns the configuration, manifest and index of an image with one layer, as JSON texts. */
export function imageDocuments(layer: Blob, config: object, name?: string) {
  const document = Buffer.from(
    JSON.stringify({ architecture: ociArchitecture(), os: "linux", config, rootfs: { type: "layers", diff_ids: [layer.digest] } }),
  );
  const manifest = Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: mediaTypes.manifest,
      config: { mediaType: mediaTypes.config, ...blobOf(document) },
      layers: [{ mediaType: mediaTypes.layer, ...layer }],
    }),
  );
  const annotations = name === undefined ? {} : { annotations: { "org.opencontainers.image.ref.name": name } };
  const index = Buffer.from(
    JSON.stringify({ schemaVersion: 2, manifests: [{ mediaType: mediaTypes.manifest, ...blobOf(manifest), ...annotations }] }),
  );
  return { document, manifest, index };
}

export const layoutText = JSON.stringify({ imageLayoutVersion: "1.0.0" });

/** Returns the reference of an image without files, which `FROM scratch` starts from. Writes it once. */
export async function emptyImage(stateDir: string): Promise<string> {
  const folder = join(stateDir, "builds", "scratch");
  if (lstatOrNull(join(folder, "index.json")) === null) await writeEmptyImage(folder);
  return `oci:${folder}`;
}

async function writeEmptyImage(folder: string): Promise<void> {
  const draft = temporaryName(folder);
  await mkdir(join(draft, "blobs", "sha256"), { recursive: true, mode: 0o700 });
  try {
    const layer = Buffer.alloc(1024);
    const { document, manifest, index } = imageDocuments(blobOf(layer), {});
    for (const data of [layer, document, manifest]) await writeFile(join(draft, "blobs", blobOf(data).digest.replace(":", "/")), data);
    await writeFile(join(draft, "oci-layout"), layoutText);
    await writeFile(join(draft, "index.json"), index);
    await rename(draft, folder);
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    // Another process wrote it first.
    if (!isErrno(error, "ENOTEMPTY", "EEXIST")) throw error;
  }
}
