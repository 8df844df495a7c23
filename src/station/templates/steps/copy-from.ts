import { posix } from "node:path";
import { CaissonError } from "../../../contract/error/error.ts";
import type { FileInfo, OwnedSandbox } from "../../../sandbox/sandbox.ts";
import { encodeTarHeader, padding, tarEnd } from "../../../sandbox/tar/tar-header.ts";
import { contextBounds } from "../context/find-sources.ts";
import { compilePath, hasWildcards, matchesPath } from "../context/path-pattern.ts";
import { excerpt, problemAt } from "../dockerfile/dockerfile-problem.ts";
import { type ExpandedCopy, placeOf } from "./copy-place.ts";
import { type NewOwner, rewriteEntries } from "./rewrite-tar.ts";
import { makeFolder } from "./run-step.ts";

const LINKS_MAX = 40;
const LISTED_MAX = 10_000;

interface FoundInside {
  path: string;
  info: FileInfo;
}

/** Copies files of one sandbox to another. Neither is trusted: the host only passes entries on. */
export async function copyFromFiles(from: OwnedSandbox, to: OwnedSandbox, copy: ExpandedCopy & { owner: NewOwner }): Promise<void> {
  const found: FoundInside[] = [];
  for (const source of copy.sources) found.push(...(await findInside(from, source, copy.line)));
  const hasFolder = found.some(({ info }) => info.kind === "directory");
  if (found.length > 1 && !copy.isFolder && !hasFolder)
    throw problemAt(copy.line, "several sources need a folder as the target", { hint: "End the target with a slash." });
  const place = await placeOf(to, copy.target, { isFolder: copy.isFolder || hasFolder });
  await makeFolder(to, place.folder);
  await to.tarIn(place.folder, joined(from, found, { ...copy, name: place.name }), { user: "root", keepOwner: true });
}

async function* joined(
  from: OwnedSandbox,
  found: readonly FoundInside[],
  { owner, mode, name }: { owner: NewOwner; mode: number | undefined; name: string | null },
): AsyncGenerator<Uint8Array> {
  for (const { path, info } of found) {
    if (info.kind === "directory") {
      const archive = await from.tarOut(path, { user: "root", bytesMax: contextBounds.bytesMax });
      yield* rewriteEntries(archive, {
        rename: belowFolder,
        owner,
        mode,
        bytesMax: contextBounds.bytesMax,
        entriesMax: contextBounds.entriesMax,
      });
      continue;
    }
    const { mode: own, sizeBytes, modifiedMs } = info;
    const header = { kind: "file" as const, name: name ?? posix.basename(path), sizeBytes, modifiedMs, linkTarget: "" };
    yield encodeTarHeader({ ...header, mode: mode ?? own & 0o777, owner });
    yield* exactly(await from.readFile(path, { user: "root", length: sizeBytes }), sizeBytes, path);
    yield padding(sizeBytes);
  }
  yield tarEnd;
}

/** The folder itself is not copied, only what is in it. */
const belowFolder = (name: string) => (name === "./" || name === "." ? null : name);

/** The header has promised the size. */
async function* exactly(content: AsyncIterable<Uint8Array>, bytes: number, path: string): AsyncGenerator<Uint8Array> {
  let left = bytes;
  for await (const piece of content) {
    left -= piece.length;
    yield piece;
  }
  if (left !== 0) throw new CaissonError("conflict", `${excerpt(path)} changed while it was copied`);
}

async function findInside(sandbox: OwnedSandbox, source: string, line: number): Promise<FoundInside[]> {
  const path = posix.resolve("/", source);
  const paths = hasWildcards(path) ? await matching(sandbox, path, line) : [path];
  const found: FoundInside[] = [];
  for (const each of paths) {
    const place = await resolveLinks(sandbox, each);
    if (place === null) continue;
    if (place.info.kind !== "file" && place.info.kind !== "directory")
      throw problemAt(line, `${excerpt(each)} is neither a file nor a folder`, { code: "unsafe" });
    // A link to a file keeps the link's name.
    found.push(place.info.kind === "file" && place.path !== each ? { path: each, info: place.info } : place);
  }
  if (found.length > 0) return found;
  throw problemAt(line, `--from has no ${JSON.stringify(excerpt(source))}`, { code: "not_found" });
}

/** Follows links to the end, by paths inside. Returns null for a path that does not exist. */
async function resolveLinks(sandbox: OwnedSandbox, path: string): Promise<FoundInside | null> {
  let at = path;
  for (let links = 0; links < LINKS_MAX; links += 1) {
    const info = await statOrNull(sandbox, at);
    if (info === null) return null;
    if (info.kind !== "link" || info.linkTarget === null) return { path: at, info };
    at = posix.resolve(posix.dirname(at), info.linkTarget);
  }
  throw new CaissonError("unsafe", `${excerpt(path)} is a link in a circle`);
}

async function statOrNull(sandbox: OwnedSandbox, path: string): Promise<FileInfo | null> {
  try {
    return await sandbox.stat(path, { user: "root", follow: false });
  } catch (error) {
    if (error instanceof CaissonError && error.code === "not_found") return null;
    throw error;
  }
}

async function matching(sandbox: OwnedSandbox, path: string, line: number): Promise<string[]> {
  const names = path.split("/").filter((name) => name !== "");
  const first = names.findIndex(hasWildcards);
  const top = `/${names.slice(0, first).join("/")}`;
  const pattern = compilePath(names.slice(first).join("/"));
  if (pattern === null) throw problemAt(line, `${JSON.stringify(excerpt(path))} is not a pattern`);
  if ((await statOrNull(sandbox, top)) === null) return [];
  const { entries, truncated } = await sandbox.list(top, { user: "root", depth: names.length - first, entriesMax: LISTED_MAX });
  if (truncated) throw problemAt(line, `${excerpt(top)} has more than ${LISTED_MAX} entries`, { code: "too_large" });
  return entries.filter(({ name }) => matchesPath(pattern, name)).map(({ name }) => posix.join(top, name));
}
