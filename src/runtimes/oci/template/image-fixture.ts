import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { type FixtureEntry, tarOf } from "../../../sandbox/tar/testing-tar.ts";

export interface FixtureImage {
  layers: FixtureEntry[][];
  tag?: string;
  architecture?: string;
  config?: Record<string, unknown>;
  compression?: "gzip" | "zstd" | "none";
  /** Zeros after the end of each layer's archive. */
  trailingBytes?: number;
}

const digestOf = (data: Uint8Array) => `sha256:${createHash("sha256").update(data).digest("hex")}`;
const here = process.arch === "x64" ? "amd64" : process.arch;

/** Creates an OCI layout folder for tests. Returns the digest of each image's manifest. */
export function writeLayout(folder: string, images: readonly FixtureImage[]): string[] {
  mkdirSync(join(folder, "blobs/sha256"), { recursive: true });
  const put = (data: Buffer) => {
    const digest = digestOf(data);
    writeFileSync(join(folder, "blobs", digest.replace(":", "/")), data);
    return { digest, size: data.length };
  };
  const manifests = images.map((image) => {
    const tars = image.layers.map((layer) => Buffer.concat([tarOf(layer), Buffer.alloc(image.trailingBytes ?? 0)]));
    const packed = tars.map((tar) =>
      image.compression === "none" ? tar : image.compression === "zstd" ? zstdCompressSync(tar) : gzipSync(tar),
    );
    const suffix = image.compression === "none" ? "" : `+${image.compression ?? "gzip"}`;
    const config = { mediaType: "application/vnd.oci.image.config.v1+json", ...put(Buffer.from(JSON.stringify(documentOf(image, tars)))) };
    const layers = packed.map((data) => ({ mediaType: `application/vnd.oci.image.layer.v1.tar${suffix}`, ...put(data) }));
    const manifest = put(
      Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType: "application/vnd.oci.image.manifest.v1+json", config, layers })),
    );
    const annotations = image.tag === undefined ? {} : { annotations: { "org.opencontainers.image.ref.name": image.tag } };
    return { mediaType: "application/vnd.oci.image.manifest.v1+json", ...manifest, ...annotations };
  });
  writeFileSync(join(folder, "index.json"), JSON.stringify({ schemaVersion: 2, manifests }));
  writeFileSync(join(folder, "oci-layout"), '{"imageLayoutVersion":"1.0.0"}');
  return manifests.map(({ digest }) => digest);
}

/** Packs an image as old versions of `docker save` did: a folder for each layer, and links for repeated layers. */
export function dockerArchive(image: FixtureImage, names: readonly string[] = ["example.test/app:1"]): Buffer {
  const tars = image.layers.map((layer) => tarOf(layer));
  const config = JSON.stringify(documentOf(image, tars));
  const seen = new Map<string, number>();
  const entries = tars.map((tar, index): FixtureEntry => {
    const first = seen.get(digestOf(tar));
    seen.set(digestOf(tar), first ?? index);
    return first === undefined
      ? { name: `layer${index}/layer.tar`, content: tar }
      : { name: `layer${index}/layer.tar`, type: "2", link: `../layer${first}/layer.tar` };
  });
  const manifest = JSON.stringify([{ Config: "config.json", RepoTags: names, Layers: tars.map((_, index) => `layer${index}/layer.tar`) }]);
  return tarOf([...entries, { name: "config.json", content: config }, { name: "manifest.json", content: manifest }]);
}

/** Packs the files of a layout folder as an oci-archive. */
export function archiveOf(folder: string): Buffer {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return tarOf(
    files.map((entry) => ({
      name: join(entry.parentPath, entry.name).slice(folder.length + 1),
      content: readFileSync(join(entry.parentPath, entry.name)),
    })),
  );
}

function documentOf(image: FixtureImage, tars: readonly Buffer[]): unknown {
  return {
    architecture: image.architecture ?? here,
    os: "linux",
    config: image.config ?? {},
    rootfs: { type: "layers", diff_ids: tars.map(digestOf) },
  };
}
