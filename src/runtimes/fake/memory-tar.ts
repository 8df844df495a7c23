import { CaissonError } from "../../contract/error/error.ts";
import { ignoring } from "../../lib/failures.ts";
import type { Bytes } from "../../sandbox/sandbox.ts";
import { readTar } from "../../sandbox/tar/read-tar.ts";
import { safeComponents } from "../../sandbox/tar/safe-folder.ts";
import { encodeTarHeader, padding, tarEnd } from "../../sandbox/tar/tar-header.ts";
import { failure } from "./failure.ts";
import type { MemoryFiles, MemoryNode } from "./memory-files.ts";

/** Packs and unpacks archives of a tree in memory by the guest's rules. */

export async function unpackIntoMemory(
  files: MemoryFiles,
  folder: string,
  archive: Bytes,
  options: { bytesMax: number; entriesMax: number; stripComponents: number; uid: number },
): Promise<{ entries: number; bytes: number }> {
  const { uid } = options;
  const result = { entries: 0, bytes: 0 };
  files.mkdir(folder, { parents: true, mode: 0o755, uid });
  for await (const entry of readTar(archive)) {
    result.entries += 1;
    if (entry.kind === "file") result.bytes += entry.sizeBytes;
    if (options.entriesMax > 0 && result.entries > options.entriesMax) throw failure("too_large", "the archive has too many entries");
    if (options.bytesMax > 0 && result.bytes > options.bytesMax) throw failure("too_large", "the unpacked archive is too large");
    const components = safeComponents(entry.name).slice(options.stripComponents);
    if (components.length === 0) continue;
    refuseLinksOnTheWay(files, folder, components.slice(0, -1));
    const path = [folder, ...components].join("/");
    if (components.length > 1) files.mkdir([folder, ...components.slice(0, -1)].join("/"), { parents: true, mode: 0o755, uid });
    const pieces: Uint8Array[] = [];
    for await (const piece of entry.content) pieces.push(Buffer.from(piece));
    if (entry.kind === "directory") {
      files.mkdir(path, { parents: true, mode: entry.mode, uid });
      files.node(path).mode = entry.mode;
      continue;
    }
    if (isLinkOrFile(files, path)) files.remove(path, { recursive: false });
    if (entry.kind === "link") files.link(entry.linkTarget, path, uid);
    else if (entry.kind === "file") files.write(path, Buffer.concat(pieces), { mode: entry.mode, uid });
    else files.write(path, linkedContent(files, folder, entry.linkTarget, options.stripComponents), { uid });
  }
  return result;
}

function linkedContent(files: MemoryFiles, folder: string, target: string, strip: number): Buffer {
  const components = safeComponents(target).slice(strip);
  refuseLinksOnTheWay(files, folder, components);
  return files.read([folder, ...components].join("/"), 0);
}

function refuseLinksOnTheWay(files: MemoryFiles, folder: string, components: string[]): void {
  for (let depth = 1; depth <= components.length; depth += 1) {
    const path = [folder, ...components.slice(0, depth)].join("/");
    try {
      if (files.node(path, { follow: false }).kind === "link") throw failure("unsafe", `${path} is a link`);
    } catch (error) {
      if (error instanceof CaissonError && error.details?.guest === "not_found") return;
      throw error;
    }
  }
}

function isLinkOrFile(files: MemoryFiles, path: string): boolean {
  const node = ignoring("nothing exists there", () => files.node(path, { follow: false }));
  return node !== undefined && node.kind !== "directory";
}

/** Packs the entries of a folder, named relative to it, or a single file under its own name. */
export function* packFromMemory(
  files: MemoryFiles,
  path: string,
  options: { exclude: readonly string[]; bytesMax: number; uid: number },
): Generator<Buffer, void, void> {
  let bytes = 0;
  const { exclude, bytesMax } = options;
  function* pack(node: MemoryNode, name: string): Generator<Buffer, void, void> {
    if (exclude.includes(name) || exclude.includes(name.split("/").at(-1) as string)) return;
    const header = { name, mode: node.mode, modifiedMs: node.modifiedMs, sizeBytes: 0, linkTarget: "" };
    if (node.kind === "directory") {
      yield encodeTarHeader({ ...header, kind: "directory" });
      for (const [child, inner] of node.children) yield* pack(inner, `${name}/${child}`);
    } else if (node.kind === "link") yield encodeTarHeader({ ...header, kind: "link", linkTarget: node.target });
    else if (node.kind === "file") {
      bytes += node.content.length;
      if (bytesMax > 0 && bytes > bytesMax) throw failure("too_large", `${path} has more than ${bytesMax} bytes`);
      yield encodeTarHeader({ ...header, kind: "file", sizeBytes: node.content.length });
      yield node.content;
      yield padding(node.content.length);
    }
  }
  const top = files.node(path);
  if (top.kind === "directory") for (const [name, node] of top.children) yield* pack(node, name);
  else yield* pack(top, path.split("/").at(-1) as string);
  yield tarEnd;
}
