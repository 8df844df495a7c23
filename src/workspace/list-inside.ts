import { CaissonError } from "../contract/error/error.ts";
import type { FileInfo, Sandbox } from "../sandbox/sandbox.ts";
import type { LeftOut } from "./change.ts";

const WORKSPACE = "/workspace";
export const DEPTH_MAX = 200;
/** The depth that the guest lists in one call. */
const LIST_DEPTH = 64;
export const ENTRIES_MAX = 100_000;

/** Returns whether a name is a git folder. These are not part of a diff, and the host never uses anything from them. */
export const isGitsOwn = (name: string) => name.toLowerCase() === ".git";
export const GITS_OWN: string = "it belongs to git: settings and hooks in it could run something outside, so it stays inside";

const CLOSED = "the folder's permissions exclude even the sandbox's user";

/**
 * Lists a folder of the workspace, `depth` levels deep. Folders that cannot be read are added to `leftOut`. Throws
 * `too_large`.
 */
export async function listInside(sandbox: Sandbox, folder: string, options: { depth: number; leftOut: LeftOut[] }): Promise<FileInfo[]> {
  const path = folder === "" ? WORKSPACE : `${WORKSPACE}/${folder}`;
  const listed = await sandbox
    .list(path, { depth: Math.min(options.depth, LIST_DEPTH), entriesMax: ENTRIES_MAX })
    .catch((error: unknown) => {
      if (!(error instanceof CaissonError) || error.code !== "denied") throw error;
      options.leftOut.push({ path: folder, reason: CLOSED });
      return { entries: [], truncated: false };
    });
  if (listed.entries.length >= ENTRIES_MAX) throw new CaissonError("too_large", `the folder ${path} has more than ${ENTRIES_MAX} files`);
  if (listed.truncated) {
    const closed = listed.entries.filter((entry) => entry.kind === "directory" && (entry.mode & 0o500) !== 0o500);
    for (const { name } of closed) options.leftOut.push({ path: folder === "" ? name : `${folder}/${name}`, reason: CLOSED });
    if (closed.length === 0)
      options.leftOut.push({ path: folder === "" ? "." : folder, reason: "it contains something that cannot be read" });
  }
  if (options.depth <= LIST_DEPTH) return listed.entries;
  const deeper = listed.entries.filter((entry) => entry.kind === "directory" && entry.name.split("/").length === LIST_DEPTH);
  const entries = [...listed.entries];
  for (const { name } of deeper) {
    const below = await listInside(sandbox, folder === "" ? name : `${folder}/${name}`, { ...options, depth: options.depth - LIST_DEPTH });
    for (const entry of below) entries.push({ ...entry, name: `${name}/${entry.name}` });
    if (entries.length >= ENTRIES_MAX) throw new CaissonError("too_large", `the folder ${path} has more than ${ENTRIES_MAX} files`);
  }
  return entries;
}

/** Returns every file below a folder that is new as a whole. */
export async function filesInside(sandbox: Sandbox, folder: string, leftOut: LeftOut[]): Promise<string[]> {
  const entries = await listInside(sandbox, folder, { depth: DEPTH_MAX, leftOut });
  return entries
    .filter((entry) => entry.kind !== "directory")
    .map((entry) => `${folder}/${entry.name}`)
    .filter((path) => {
      const own = path.split("/").find(isGitsOwn) !== undefined;
      if (own && !leftOut.some((each) => path.startsWith(`${each.path}/`))) leftOut.push({ path: gitFolderOf(path), reason: GITS_OWN });
      return !own;
    });
}

export function gitFolderOf(path: string): string {
  const parts = path.split("/");
  return parts.slice(0, parts.findIndex(isGitsOwn) + 1).join("/");
}
