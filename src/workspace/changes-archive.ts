import { createHash } from "node:crypto";
import { CaissonError } from "../contract/error/error.ts";
import { checkValue, tellProblems } from "../contract/error/plain-problems.ts";
import { ChangesManifest, CONTENT_PREFIX, MANIFEST_NAME, type ManifestSide } from "../contract/session/changes-manifest.ts";
import { jsonOrNull } from "../lib/failures.ts";
import { readTar } from "../sandbox/tar/read-tar.ts";
import { encodeTarHeader, padding, tarEnd } from "../sandbox/tar/tar-header.ts";
import type { Change, Changes, FileSide } from "./change.ts";

/** Limit for all contents together, as in a diff. */
const CONTENT_BYTES_MAX = 512 * 1024 * 1024;
const MANIFEST_BYTES_MAX = 64 * 1024 * 1024;

type Described = Pick<ChangesManifest, "id" | "kind" | "source" | "commit">;

/**
 * Packs changes into an archive that another machine can compare with its folder. `base` adds the old contents, for a
 * reader without that folder. `applied` has the git blob names of the contents that were applied there before.
 */
export async function* packChanges(
  described: Described,
  { changes, leftOut, ignored }: Changes,
  options: { base: boolean; applied: ReadonlyMap<string, string> },
): AsyncGenerator<Uint8Array, void, void> {
  // Moves are split. The reader pairs them again among the differences that it finds.
  const single = changes.flatMap((change) => apart(change));
  const files = single.map(({ path, before, after }) => ({
    path,
    before: before && describe(before),
    after: after && describe(after),
    applied: options.applied.get(path) ?? null,
  }));
  const manifest: ChangesManifest = { version: 1, ...described, files, leftOut, ignored };
  yield* entry(MANIFEST_NAME, Buffer.from(JSON.stringify(manifest)));
  const sent = new Set<string>();
  for (const { before, after } of single) {
    for (const side of options.base ? [before, after] : [after]) {
      if (side === null) continue;
      const digest = digestOf(side.content);
      if (!sent.has(digest)) yield* entry(`${CONTENT_PREFIX}${digest}`, side.content);
      sent.add(digest);
    }
  }
  yield tarEnd;
}

function apart({ path, from, before, after }: Change): Pick<Change, "path" | "before" | "after">[] {
  if (from === null) return [{ path, before, after }];
  return [
    { path: from, before, after: null },
    { path, before: null, after },
  ];
}

const describe = ({ kind, mode, content }: FileSide) => ({ kind, mode, bytes: content.length, digest: digestOf(content) }) as ManifestSide;

export const digestOf = (content: Uint8Array) => createHash("sha256").update(content).digest("hex");

function* entry(name: string, content: Buffer): Generator<Uint8Array> {
  yield encodeTarHeader({ kind: "file", name, mode: 0o600, sizeBytes: content.length, modifiedMs: 0, linkTarget: "" });
  yield content;
  const rest = padding(content.length);
  if (rest.length > 0) yield rest;
}

/** The manifest of an archive, and access to its contents. */
export interface ReadChangesArchive {
  manifest: ChangesManifest;
  /** Reads the rest and returns each content by its digest. */
  contents(): Promise<ReadonlyMap<string, Buffer>>;
  /** Stops reading the archive. */
  close(): Promise<void>;
}

/**
 * Reads a change archive from an untrusted station. Writes nothing and trusts nothing in it: the manifest must list
 * every content with its size and digest, and every path must be valid, unique and inside the folder. Throws
 * `protocol`, `unsafe`, `too_large`.
 */
export async function readChangesArchive(archive: AsyncIterable<Uint8Array>): Promise<ReadChangesArchive> {
  const entries = readTar(archive);
  const close = async () => void (await entries.return());
  try {
    const first = await entries.next();
    if (first.done === true || first.value.name !== MANIFEST_NAME || first.value.kind !== "file")
      throw brokenArchiveError("the manifest is missing");
    const text = await bytesOf(first.value, MANIFEST_BYTES_MAX);
    const parsed = checkValue(ChangesManifest, jsonOrNull(text.toString("utf8")));
    if (!parsed.success) throw brokenArchiveError(tellProblems(parsed.problems));
    const manifest = parsed.data;
    checkPaths(manifest);
    return { manifest, close, contents: () => contentsOf(entries, manifest) };
  } catch (error) {
    await close();
    throw error;
  }
}

function checkPaths({ files }: ChangesManifest): void {
  const seen = new Set<string>();
  for (const { path, before, after } of files) {
    // The applying side reports paths that are forbidden for other reasons.
    if (path.startsWith("/") || path.includes("\0") || path.split("/").some((part) => part === "" || part === "." || part === ".."))
      throw new CaissonError("unsafe", `the station sent the path ${JSON.stringify(path.slice(0, 200))}, which leaves the folder`);
    if (seen.has(path)) throw brokenArchiveError(`${JSON.stringify(path.slice(0, 200))} appears twice`);
    seen.add(path);
    if (before === null && after === null) throw brokenArchiveError(`${JSON.stringify(path.slice(0, 200))} exists on neither side`);
    for (const side of [before, after])
      if (side !== null && (side.mode === 0o777) !== (side.kind === "link"))
        throw brokenArchiveError(`${JSON.stringify(path)} has an invalid mode`);
  }
}

async function contentsOf(entries: ReturnType<typeof readTar>, { files }: ChangesManifest): Promise<Map<string, Buffer>> {
  const sizes = new Map<string, number>();
  for (const { before, after } of files) {
    for (const side of [before, after]) if (side !== null) sizes.set(side.digest, side.bytes);
  }
  const contents = new Map<string, Buffer>();
  let left = CONTENT_BYTES_MAX;
  for await (const each of entries) {
    const digest = each.name.slice(CONTENT_PREFIX.length);
    const size = each.kind === "file" && each.name.startsWith(CONTENT_PREFIX) && !contents.has(digest) ? sizes.get(digest) : undefined;
    if (size === undefined || each.sizeBytes !== size)
      throw brokenArchiveError(`unexpected entry ${JSON.stringify(each.name.slice(0, 200))}`);
    left -= size;
    if (left < 0) throw new CaissonError("too_large", `the changed files exceed ${CONTENT_BYTES_MAX} bytes in total`);
    const content = await bytesOf(each, size);
    if (digestOf(content) !== digest) throw brokenArchiveError("content does not match its digest");
    contents.set(digest, content);
  }
  for (const { after } of files) if (after !== null && !contents.has(after.digest)) throw brokenArchiveError("content is missing");
  return contents;
}

async function bytesOf(entry: { sizeBytes: number; content: AsyncIterable<Uint8Array> }, bytesMax: number): Promise<Buffer> {
  if (entry.sizeBytes > bytesMax) throw new CaissonError("too_large", "the station's change manifest is too large");
  const pieces: Uint8Array[] = [];
  for await (const piece of entry.content) pieces.push(Uint8Array.from(piece));
  return Buffer.concat(pieces);
}

function brokenArchiveError(what: string): CaissonError {
  return new CaissonError("protocol", `the station sent an invalid change archive: ${what}`);
}

/** Returns a side from the manifest, with its content. */
export function sideFrom(side: ManifestSide | null, contents: ReadonlyMap<string, Buffer>): FileSide | null {
  if (side === null) return null;
  const content = contents.get(side.digest);
  if (content === undefined) throw brokenArchiveError("content is missing");
  return { kind: side.kind, mode: side.mode, content };
}
