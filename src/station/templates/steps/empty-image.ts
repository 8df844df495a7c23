import { createHash } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { lstatOrNull } from "../../../lib/paths.ts";
import { replaceFile, sweepTemporaries } from "../../../lib/replace-file.ts";

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

/** Every write can be repeated, also by another process at the same time, and the index is last. */
async function writeEmptyImage(folder: string): Promise<void> {
  const blobs = join(folder, "blobs", "sha256");
  await mkdir(blobs, { recursive: true, mode: 0o700 });
  for (const each of [folder, blobs]) await sweepTemporaries(each);
  const layer = Buffer.alloc(1024);
  const { document, manifest, index } = imageDocuments(blobOf(layer), {});
  for (const data of [layer, document, manifest])
    await replaceFile(blobs, blobOf(data).digest.slice("sha256:".length), data.toString("latin1"));
  await replaceFile(folder, "oci-layout", layoutText);
  await replaceFile(folder, "index.json", index.toString());
}
