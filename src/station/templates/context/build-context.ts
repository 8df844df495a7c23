import { createHash } from "node:crypto";
import { CaissonError } from "../../../contract/error/error.ts";
import type { HidingRules } from "../../../contract/workspace/workspace-guard.ts";
import { findCredentialFiles } from "../../../workspace/credential-files.ts";
import { FolderTree } from "../../../workspace/folder-tree.ts";
import { contextBounds, type FoundSources, findSources } from "./find-sources.ts";
import { type IgnoreRules, ignoresNothing, parseIgnoreFile } from "./ignore-file.ts";
import { compilePath, matchesPath, type PathPattern } from "./path-pattern.ts";

const TEXT_BYTES_MAX = 1024 * 1024;
const EXCLUDES_CHARACTERS_MAX = 65_536;
const searchBounds = { depthMax: contextBounds.depthMax, entriesMax: contextBounds.entriesMax, timeMaxMs: 60_000 };
const READ_BYTES = 262_144;
/** Smaller files are read at once, into this buffer, which no call keeps. */
const smallFile = Buffer.alloc(65_536);

export interface ContextEntry {
  /** The path below the context folder. */
  path: string;
  kind: "file" | "directory" | "link";
  mode: number;
  sizeBytes: number;
  modifiedMs: number;
  linkTarget: string;
}

/** One source of COPY: a file, or a folder with everything in it. */
export interface ContextSource {
  path: string;
  isFolder: boolean;
  /** The entries to copy: the file itself, or what is below the folder. */
  entries: readonly ContextEntry[];
}

/**
 * The folder that a build reads, reached by descriptors that cannot leave it. Links are copied as links and never
 * followed.
 */
export interface BuildContext extends Disposable {
  /** The folder itself. */
  readonly folder: string;
  /** Returns a small file's text, or null if there is no such file. Throws `too_large`, `unsafe`. */
  readText(path: string): Promise<string | null>;
  /** The same, for a file that must exist. Throws `not_found`. */
  requireText(path: string): Promise<string>;
  isFolder(path: string): boolean;
  /** Finds what the sources of a COPY name, and throws what `findSources` throws. */
  find(sources: readonly string[], options: { excludes: readonly string[]; signal?: AbortSignal | undefined }): Promise<FoundSources>;
  digest(entry: ContextEntry): Promise<string>;
  read(entry: ContextEntry): AsyncIterable<Uint8Array>;
  /** Applies the ignore file of a Dockerfile, or of the folder. */
  useIgnoreFile(dockerfile: string | null): Promise<void>;
  /** The files that look like credentials, which COPY does not see. */
  hidden(): Promise<readonly string[]>;
}

export function openBuildContext(folder: string, { hiding }: { hiding: HidingRules }): BuildContext {
  const tree = new FolderTree(folder);
  let ignore = ignoresNothing;
  let credentials: Promise<ReadonlySet<string>> | undefined;
  const hidden = () => (credentials ??= findHidden(folder, hiding));
  const context: BuildContext = {
    folder,
    readText: (path) => readText(tree, path),
    async requireText(path) {
      const text = await readText(tree, path);
      if (text !== null) return text;
      throw new CaissonError("not_found", `the context has no file ${JSON.stringify(path.slice(0, 200))}`);
    },
    isFolder: (path) => path === "" || tree.stat(path)?.isDirectory() === true,
    async find(sources, { excludes, signal }) {
      const without = compiled(excludes);
      const secret = await hidden();
      const isLeftOut = (path: string) =>
        ignore.isIgnored(path) || secret.has(path) || without.some((pattern) => matchesPath(pattern, path));
      return await findSources(tree, sources, { isLeftOut, walksIgnored: ignore.hasExceptions, signal });
    },
    digest: (entry) => digestOf(tree, entry),
    read: (entry) => readEntry(tree, entry),
    async useIgnoreFile(dockerfile) {
      ignore = await readIgnoreFile(tree, dockerfile);
    },
    hidden: async () => [...(await hidden())],
    [Symbol.dispose]: () => tree[Symbol.dispose](),
  };
  return context;
}

async function findHidden(folder: string, hiding: HidingRules): Promise<ReadonlySet<string>> {
  const { paths, complete } = await findCredentialFiles(folder, hiding, searchBounds);
  if (complete) return new Set(paths);
  throw new CaissonError("too_large", `${folder} is too large to search for credentials`, { hint: "Build from a smaller folder." });
}

async function readIgnoreFile(tree: FolderTree, dockerfile: string | null): Promise<IgnoreRules> {
  for (const file of [...(dockerfile === null ? [] : [`${dockerfile}.dockerignore`]), ".dockerignore"]) {
    const text = await readText(tree, file);
    if (text !== null) return parseIgnoreFile(text, file);
  }
  return ignoresNothing;
}

async function readText(tree: FolderTree, path: string): Promise<string | null> {
  const file = await tree.openFile(path);
  if (file === null) return null;
  try {
    if ((await file.stat()).size > TEXT_BYTES_MAX) throw new CaissonError("too_large", `${path} is larger than ${TEXT_BYTES_MAX} bytes`);
    return (await file.readFile()).toString("utf8");
  } finally {
    await file.close();
  }
}

function compiled(patterns: readonly string[]): PathPattern[] {
  if (patterns.reduce((sum, pattern) => sum + pattern.length, 0) > EXCLUDES_CHARACTERS_MAX)
    throw new CaissonError("too_large", `--exclude has more than ${EXCLUDES_CHARACTERS_MAX} characters`);
  return patterns.map((pattern) => {
    const found = compilePath(pattern);
    if (found === null) throw new CaissonError("invalid", `${JSON.stringify(pattern.slice(0, 200))} is not a pattern`);
    return found;
  });
}

async function digestOf(tree: FolderTree, entry: ContextEntry): Promise<string> {
  const hash = createHash("sha256").update(`${entry.kind} ${entry.mode.toString(8)} ${entry.sizeBytes} ${entry.linkTarget}\0`);
  const length = entry.kind === "file" && entry.sizeBytes < smallFile.length ? tree.readInto(smallFile, entry.path) : null;
  if (length === entry.sizeBytes) hash.update(smallFile.subarray(0, length));
  else if (entry.kind === "file") for await (const piece of readEntry(tree, entry)) hash.update(piece);
  return hash.digest("hex");
}

/** Reads exactly as many bytes as the entry has; a file that changes meanwhile is an error. */
async function* readEntry(tree: FolderTree, entry: ContextEntry): AsyncGenerator<Uint8Array> {
  const file = await tree.openFile(entry.path);
  if (file === null) throw new CaissonError("conflict", `${entry.path} changed while it was read`);
  try {
    for (let left = entry.sizeBytes; left > 0; ) {
      const buffer = Buffer.allocUnsafe(Math.min(READ_BYTES, left));
      const { bytesRead } = await file.read(buffer, 0, buffer.length);
      if (bytesRead === 0) throw new CaissonError("conflict", `${entry.path} shrank while it was read`);
      left -= bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await file.close();
  }
}
