import { createHash } from "node:crypto";
import { CaissonError } from "../../../contract/error/error.ts";
import type { HidingRules } from "../../../contract/workspace/workspace-guard.ts";
import { findCredentialFiles } from "../../../workspace/credential-files.ts";
import { FolderTree } from "../../../workspace/folder-tree.ts";
import { type IgnoreRules, ignoresNothing, parseIgnoreFile } from "./ignore-file.ts";
import { compilePath, hasWildcards, matchesPath } from "./path-pattern.ts";

/** Bounds on what one instruction may copy. */
export const contextBounds = { entriesMax: 500_000, bytesMax: 8 * 1024 ** 3, depthMax: 200, textBytesMax: 1024 * 1024 } as const;
const searchBounds = { depthMax: contextBounds.depthMax, entriesMax: contextBounds.entriesMax, timeMaxMs: 60_000 };
const READ_BYTES = 262_144;

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
  /** Finds what a source of COPY names. Throws `not_found`, `unsafe`, `too_large`. */
  find(source: string, options: { excludes: readonly string[] }): Promise<ContextSource[]>;
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
    async find(source, { excludes }) {
      const without = excludes.map((each) => compiled(each));
      const secret = await hidden();
      const isLeftOut = (path: string) =>
        ignore.isIgnored(path) || secret.has(path) || without.some((pattern) => matchesPath(pattern, path));
      return findSources(tree, source, { isLeftOut, walksIgnored: ignore.hasExceptions });
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
    if ((await file.stat()).size > contextBounds.textBytesMax)
      throw new CaissonError("too_large", `${path} is larger than ${contextBounds.textBytesMax} bytes`);
    return (await file.readFile()).toString("utf8");
  } finally {
    await file.close();
  }
}

/** Returns a source as a path below the folder. Throws `unsafe` for one that leaves it. */
export function contextPath(source: string): string {
  const names: string[] = [];
  for (const name of source.split("/")) {
    if (name === "" || name === ".") continue;
    if (name !== "..") names.push(name);
    else if (names.pop() === undefined)
      throw new CaissonError("unsafe", `${JSON.stringify(source.slice(0, 200))} leaves the context`, {
        hint: "COPY and ADD read only files below the folder that is built.",
      });
  }
  return names.join("/");
}

function compiled(pattern: string) {
  const found = compilePath(pattern);
  if (found === null) throw new CaissonError("invalid", `${JSON.stringify(pattern.slice(0, 200))} is not a pattern`);
  return found;
}

interface FindOptions {
  isLeftOut: (path: string) => boolean;
  walksIgnored: boolean;
}

function findSources(tree: FolderTree, source: string, options: FindOptions): ContextSource[] {
  const path = contextPath(source);
  const budget = { entries: contextBounds.entriesMax, bytes: contextBounds.bytesMax };
  const found = hasWildcards(path) ? matching(tree, path, options) : [path];
  const sources = found.flatMap((each) => {
    const one = sourceAt(tree, each, { ...options, budget });
    return one === null ? [] : [one];
  });
  if (sources.length > 0) return sources;
  throw new CaissonError("not_found", `the context has no ${JSON.stringify(source.slice(0, 200))}`, {
    hint: "It may be ignored by .dockerignore, or hidden because it looks like a credential; --show NAME shows it.",
  });
}

function matching(tree: FolderTree, source: string, { isLeftOut }: FindOptions): string[] {
  const pattern = compiled(source);
  const found: string[] = [];
  let looks = contextBounds.entriesMax;
  let level = [""];
  for (let depth = 0; level.length > 0 && depth < contextBounds.depthMax; depth += 1) {
    const next: string[] = [];
    for (const at of level) {
      for (const entry of tree.entries(at)) {
        if (--looks < 0) throw tooMany();
        const path = at === "" ? entry.name : `${at}/${entry.name}`;
        if (matchesPath(pattern, path)) {
          if (!isLeftOut(path)) found.push(path);
        } else if (entry.isDirectory() && (pattern.includes("**") || depth + 1 < pattern.length)) next.push(path);
      }
    }
    level = next;
  }
  return found.sort();
}

const tooMany = () => new CaissonError("too_large", `the context has more than ${contextBounds.entriesMax} entries`);

function sourceAt(
  tree: FolderTree,
  path: string,
  options: FindOptions & { budget: { entries: number; bytes: number } },
): ContextSource | null {
  if (path === "") return { path, isFolder: true, entries: below(tree, "", options) };
  if (options.isLeftOut(path) && !(options.walksIgnored && tree.stat(path)?.isDirectory())) return null;
  const entry = entryAt(tree, path);
  if (entry === null) return null;
  if (entry.kind !== "directory") return { path, isFolder: false, entries: [charge(entry, options.budget)] };
  return { path, isFolder: true, entries: below(tree, path, options) };
}

/** Returns everything below a folder, folders before their content, in a stable order. */
function below(tree: FolderTree, top: string, options: FindOptions & { budget: { entries: number; bytes: number } }): ContextEntry[] {
  const found: ContextEntry[] = [];
  const walk = (folder: string, depth: number): void => {
    if (depth > contextBounds.depthMax) throw new CaissonError("too_large", `${folder.slice(0, 200)}… is nested too deeply`);
    const names = tree.entries(folder).map(({ name }) => name);
    for (const name of names.sort()) {
      const path = folder === "" ? name : `${folder}/${name}`;
      const isLeftOut = options.isLeftOut(path);
      const entry = isLeftOut && !options.walksIgnored ? null : entryAt(tree, path);
      if (entry === null) continue;
      if (!isLeftOut) found.push(charge(entry, options.budget));
      if (entry.kind === "directory") walk(path, depth + 1);
    }
  };
  walk(top, 0);
  return found;
}

function charge(entry: ContextEntry, budget: { entries: number; bytes: number }): ContextEntry {
  budget.entries -= 1;
  budget.bytes -= entry.sizeBytes;
  if (budget.entries < 0) throw tooMany();
  if (budget.bytes < 0) throw new CaissonError("too_large", `the context has more than ${contextBounds.bytesMax} bytes`);
  return entry;
}

/** Returns null for sockets, devices and FIFOs, and for what no longer exists. */
function entryAt(tree: FolderTree, path: string): ContextEntry | null {
  const stats = tree.stat(path);
  if (stats === null) return null;
  const common = { path, mode: stats.mode & 0o777, modifiedMs: Math.floor(stats.mtimeMs), sizeBytes: 0, linkTarget: "" };
  if (stats.isDirectory()) return { ...common, kind: "directory" };
  if (stats.isSymbolicLink()) return { ...common, kind: "link", linkTarget: tree.readLink(path)?.toString("utf8") ?? "" };
  return stats.isFile() ? { ...common, kind: "file", sizeBytes: stats.size } : null;
}

async function digestOf(tree: FolderTree, entry: ContextEntry): Promise<string> {
  const hash = createHash("sha256").update(`${entry.kind} ${entry.mode.toString(8)} ${entry.sizeBytes} ${entry.linkTarget}\0`);
  if (entry.kind === "file") for await (const piece of readEntry(tree, entry)) hash.update(piece);
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
