import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, open, rm } from "node:fs/promises";
import { join, posix } from "node:path";
import { SandboxConfig } from "../../contract/sandbox/sandbox.ts";
import type { TemplateConfig, TemplateView } from "../../contract/template/template.ts";
import { sweepTemporaries, temporaryName } from "../../lib/replace-file.ts";
import { createDiskShares } from "../../sandbox/disk-shares.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import { encodeTarHeader, padding, tarEnd } from "../../sandbox/tar/tar-header.ts";
import type { LocalSandboxes } from "../sandboxes/local-sandboxes.ts";
import { BUILD_LABEL } from "../vocabulary/station-names.ts";
import { type Blob, blobOf, imageDocuments, layoutText } from "./steps/empty-image.ts";
import { rewriteEntries } from "./steps/rewrite-tar.ts";

const LAYER_BYTES_MAX = 64 * 1024 ** 3;
const LAYER_ENTRIES_MAX = 5_000_000;
const TOP_ENTRIES_MAX = 10_000;
/** What belongs to each sandbox, and to no image. */
const ofSandboxes: ReadonlySet<string> = new Set(["proc", "sys", "dev", "tmp", ".caisson"]);
const emptied = ["proc", "sys", "dev", "tmp"];
const isPacked: ReadonlySet<string> = new Set(["file", "directory", "link"]);
const generated: ReadonlySet<string> = new Set(["etc/hostname", "etc/hosts", "etc/resolv.conf"]);

export interface ExportOptions {
  stateDir: string;
  sandboxes: Pick<LocalSandboxes, "create">;
}

/** Streams a template as the tar archive of an OCI layout: one image with one layer, named as the template. */
export async function* exportTemplate(template: TemplateView, options: ExportOptions): AsyncGenerator<Uint8Array> {
  const folder = join(options.stateDir, "builds", "exports");
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await sweepTemporaries(folder);
  const file = temporaryName(join(folder, template.id));
  try {
    const layer = await writeLayer(file, template, options);
    const { document, manifest, index } = imageDocuments(layer, imageConfigOf(template.config), template.names[0] ?? template.id);
    yield* fileEntry("oci-layout", Buffer.from(layoutText));
    yield* fileEntry("index.json", index);
    for (const data of [document, manifest]) yield* fileEntry(blobPath(blobOf(data)), data);
    yield encodeTarHeader({ ...plainFile, name: blobPath(layer), sizeBytes: layer.size });
    for await (const piece of createReadStream(file)) yield piece as Uint8Array;
    yield padding(layer.size);
    yield tarEnd;
  } finally {
    await rm(file, { force: true });
  }
}

const plainFile = { kind: "file", mode: 0o644, modifiedMs: 0, linkTarget: "" } as const;
const blobPath = ({ digest }: Blob) => `blobs/${digest.replace(":", "/")}`;

function* fileEntry(name: string, data: Buffer): Generator<Uint8Array> {
  yield encodeTarHeader({ ...plainFile, name, sizeBytes: data.length });
  yield data;
  yield padding(data.length);
}

/** Writes the layer to a file first: its digest and size stand before it in the archive. */
async function writeLayer(file: string, template: TemplateView, { stateDir, sandboxes }: ExportOptions): Promise<Blob> {
  const { snapshot, runtime, owner } = template;
  const spec = SandboxConfig.parse({
    template: { kind: "snapshot", id: snapshot },
    allowRoot: true,
    labels: { [BUILD_LABEL]: template.id },
  });
  const sandbox = await sandboxes.create({ spec, runtime }, { owner });
  const handle = await open(file, "wx", 0o600);
  try {
    return await createDiskShares({ stateDir }).write({ what: "the exported template", owner }, async ({ add }) => {
      const hash = createHash("sha256");
      let size = 0;
      for await (const piece of layerOf(sandbox)) {
        await add(piece.length);
        await handle.writeFile(piece);
        hash.update(piece);
        size += piece.length;
      }
      return { digest: `sha256:${hash.digest("hex")}`, size };
    });
  } finally {
    await handle.close();
    await sandbox.destroy();
  }
}

/** Packs the root file system, without what belongs to the sandbox. */
async function* layerOf(sandbox: OwnedSandbox): AsyncGenerator<Uint8Array> {
  for (const name of emptied)
    yield encodeTarHeader({
      ...plainFile,
      kind: "directory",
      name,
      sizeBytes: 0,
      mode: name === "tmp" ? 0o1777 : 0o755,
      owner: { uid: 0, gid: 0 },
    });
  const { entries } = await sandbox.list("/", { user: "root", depth: 1, entriesMax: TOP_ENTRIES_MAX });
  for (const entry of entries) {
    // Like `tarOut` below, without sockets, FIFOs and devices.
    if (ofSandboxes.has(entry.name) || !isPacked.has(entry.kind)) continue;
    const archive = await sandbox.tarOut(`/${entry.name}`, { user: "root", exclude: entry.name === "run" ? ["caisson"] : [] });
    const rename = (inside: string) => {
      const name = entry.kind === "directory" ? posix.join(entry.name, inside) : inside;
      return generated.has(name) ? null : name;
    };
    yield* rewriteEntries(archive, { rename, bytesMax: LAYER_BYTES_MAX, entriesMax: LAYER_ENTRIES_MAX });
  }
  yield tarEnd;
}

function imageConfigOf(config: TemplateConfig): object {
  const asSet = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, {}]));
  return {
    Env: Object.entries(config.env).map(([name, value]) => `${name}=${value}`),
    WorkingDir: config.workdir,
    ...(config.user !== null && { User: config.user }),
    ...(config.entrypoint !== null && { Entrypoint: config.entrypoint }),
    ...(config.command !== null && { Cmd: config.command }),
    ...(config.stopSignal !== null && { StopSignal: config.stopSignal }),
    Labels: config.labels,
    ...(config.ports.length > 0 && { ExposedPorts: asSet(config.ports) }),
    ...(config.volumes.length > 0 && { Volumes: asSet(config.volumes) }),
  };
}
