import { setImmediate } from "node:timers/promises";
import { CaissonError } from "../../../contract/error/error.ts";
import type { FolderTree } from "../../../workspace/folder-tree.ts";
import type { ContextEntry, ContextSource } from "./build-context.ts";
import { contextPath } from "./context-path.ts";
import { compilePath, hasWildcards, matchesPath } from "./path-pattern.ts";

/** Bounds on what one instruction may copy. */
export const contextBounds = {
  entriesMax: 500_000,
  bytesMax: 8 * 1024 ** 3,
  depthMax: 200,
  /** Also counts what is left out. */
  looksMax: 2_000_000,
  sourcesMax: 10_000,
  timeMaxMs: 300_000,
} as const;
/** How long a search may keep the process from other work. */
const TURN_MS = 20;

export interface FindOptions {
  isLeftOut: (path: string) => boolean;
  /** Whether something below a folder that is left out may be copied. */
  walksIgnored: boolean;
  signal?: AbortSignal | undefined;
}

/** What one instruction finds. */
export interface FoundSources {
  sources: ContextSource[];
  /** What COPY cannot copy, each as a sentence. */
  leftOut: string[];
}

/** The search of one instruction, whose sources share its bounds. */
interface Search extends FindOptions {
  tree: FolderTree;
  /** Counts an entry that the search looks at, and lets other work run now and then. */
  look(): Promise<void>;
  charge(entry: ContextEntry): ContextEntry;
  leaveOut(path: string, kind: string): void;
}

/**
 * Finds what the sources of one COPY or ADD name. Throws `not_found`, `unsafe`, `too_large`, `unsupported`,
 * `cancelled`.
 */
export async function findSources(tree: FolderTree, sources: readonly string[], options: FindOptions): Promise<FoundSources> {
  if (sources.length > contextBounds.sourcesMax)
    throw new CaissonError("too_large", `the instruction has more than ${contextBounds.sourcesMax} sources`);
  const leftOut: string[] = [];
  const search = createSearch(tree, options, leftOut);
  const found: ContextSource[] = [];
  for (const source of sources) {
    const path = contextPath(source);
    const before = found.length;
    for (const each of hasWildcards(path) ? await matching(search, path) : [path]) {
      const one = await sourceAt(search, each);
      if (one !== null) found.push(one);
    }
    if (found.length === before) throw noSource(search, source, path);
  }
  return { sources: found, leftOut };
}

const quote = (path: string) => JSON.stringify(path.slice(0, 200));

function noSource({ tree }: Search, source: string, path: string): CaissonError {
  const stats = path === "" || hasWildcards(path) ? null : tree.stat(path);
  if (stats !== null && kindOf(stats) === null)
    return new CaissonError("unsupported", `${quote(source)} is a ${specialKind(stats)}, which cannot be copied`);
  return new CaissonError("not_found", `the context has no ${quote(source)}`, {
    hint: "It may be ignored by .dockerignore, or hidden because it looks like a credential; --show NAME shows it.",
  });
}

function createSearch(tree: FolderTree, options: FindOptions, leftOut: string[]): Search {
  const budget = { looks: contextBounds.looksMax, entries: contextBounds.entriesMax, bytes: contextBounds.bytesMax };
  const startedAt = performance.now();
  let turnAt = startedAt;
  return {
    ...options,
    tree,
    async look() {
      budget.looks -= 1;
      if (budget.looks < 0) throw tooMany(contextBounds.looksMax);
      const now = performance.now();
      if (now - turnAt < TURN_MS) return;
      if (now - startedAt > contextBounds.timeMaxMs)
        throw new CaissonError("too_large", `searching the context took more than ${contextBounds.timeMaxMs / 1000} seconds`, {
          hint: "Copy fewer files, or use fewer rules in .dockerignore.",
        });
      await setImmediate();
      if (options.signal?.aborted) throw new CaissonError("cancelled", "the build was interrupted");
      turnAt = performance.now();
    },
    charge(entry) {
      budget.entries -= 1;
      budget.bytes -= entry.sizeBytes;
      if (budget.entries < 0) throw tooMany(contextBounds.entriesMax);
      if (budget.bytes < 0) throw new CaissonError("too_large", `one instruction cannot copy more than ${contextBounds.bytesMax} bytes`);
      return entry;
    },
    leaveOut(path, kind) {
      if (leftOut.length < LEFT_OUT_MAX) leftOut.push(`${quote(path)} is a ${kind}, which cannot be copied`);
    },
  };
}

const LEFT_OUT_MAX = 20;
const tooMany = (max: number) => new CaissonError("too_large", `one instruction cannot search more than ${max} entries`);

async function matching(search: Search, source: string): Promise<string[]> {
  const pattern = compilePath(source);
  if (pattern === null) throw new CaissonError("invalid", `${quote(source)} is not a pattern`);
  const found: string[] = [];
  let level = [""];
  for (let depth = 0; level.length > 0 && depth < contextBounds.depthMax; depth += 1) {
    const next: string[] = [];
    for (const at of level) {
      for (const { name, kind } of search.tree.exactEntries(at)) {
        await search.look();
        const path = at === "" ? name : `${at}/${name}`;
        if (matchesPath(pattern, path)) {
          if (!search.isLeftOut(path)) found.push(path);
        } else if (kind === "folder" && (pattern.includes("**") || depth + 1 < pattern.length)) next.push(path);
      }
    }
    level = next;
  }
  return found.sort();
}

async function sourceAt(search: Search, path: string): Promise<ContextSource | null> {
  const { tree } = search;
  await search.look();
  if (path === "") return { path, isFolder: true, entries: await below(search, "") };
  if (search.isLeftOut(path) && !(search.walksIgnored && tree.stat(path)?.isDirectory())) return null;
  const entry = entryAt(search, path);
  if (entry === null) return null;
  if (entry.kind !== "directory") return { path, isFolder: false, entries: [search.charge(entry)] };
  return { path, isFolder: true, entries: await below(search, path) };
}

/** Returns everything below a folder, folders before their content, in a stable order. */
async function below(search: Search, top: string): Promise<ContextEntry[]> {
  const found: ContextEntry[] = [];
  const walk = async (folder: string, depth: number): Promise<void> => {
    if (depth > contextBounds.depthMax) throw new CaissonError("too_large", `${folder.slice(0, 200)}… is nested too deeply`);
    const names = search.tree.exactEntries(folder).map(({ name }) => name);
    for (const name of names.sort()) {
      await search.look();
      const path = folder === "" ? name : `${folder}/${name}`;
      const isLeftOut = search.isLeftOut(path);
      const entry = isLeftOut && !search.walksIgnored ? null : entryAt(search, path);
      if (entry === null) continue;
      if (!isLeftOut) found.push(search.charge(entry));
      if (entry.kind === "directory") await walk(path, depth + 1);
    }
  };
  await walk(top, 0);
  return found;
}

type Stats = NonNullable<ReturnType<FolderTree["stat"]>>;

function kindOf(stats: Stats): ContextEntry["kind"] | null {
  if (stats.isDirectory()) return "directory";
  if (stats.isSymbolicLink()) return "link";
  return stats.isFile() ? "file" : null;
}

function specialKind(stats: Stats): string {
  if (stats.isFIFO()) return "FIFO";
  return stats.isSocket() ? "socket" : "device";
}

/** Returns null for sockets, devices and FIFOs, and for what no longer exists. */
function entryAt({ tree, leaveOut }: Search, path: string): ContextEntry | null {
  const stats = tree.stat(path);
  if (stats === null) return null;
  const kind = kindOf(stats);
  if (kind === null) {
    leaveOut(path, specialKind(stats));
    return null;
  }
  if (!path.isWellFormed()) throw notUtf8(`the name ${quote(path.toWellFormed())}`);
  const target = kind === "link" ? tree.readLink(path) : null;
  const linkTarget = target?.toString("utf8") ?? "";
  if (target !== null && !target.equals(Buffer.from(linkTarget))) throw notUtf8(`the target of the link ${quote(path)}`);
  const modifiedMs = Math.floor(stats.mtimeMs);
  return { path, kind, mode: stats.mode & 0o777, modifiedMs, sizeBytes: kind === "file" ? stats.size : 0, linkTarget };
}

const notUtf8 = (what: string) =>
  new CaissonError("unsupported", `${what} is not UTF-8`, { hint: "Rename it, or name its folder in .dockerignore." });
