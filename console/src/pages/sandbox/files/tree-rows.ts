import type { Client } from "../../../../../src/client/connect.ts";
import { joinPath } from "./paths.ts";

export type Entry = Awaited<ReturnType<Client["files"]["list"]>>["entries"][number];

export interface TreeRow {
  path: string;
  name: string;
  kind: Entry["kind"];
  depth: number;
  isOpen: boolean;
  /** Whether the content of an open folder is still loading. */
  isLoading: boolean;
  entry: Entry;
}

export type Listings = ReadonlyMap<string, { entries: readonly Entry[]; truncated: boolean }>;

/** Returns the unfolded tree from top to bottom: folders first, sorted by name. */
export function treeRows(root: string, { open, listings }: { open: ReadonlySet<string>; listings: Listings }): TreeRow[] {
  const rows: TreeRow[] = [];
  const add = (folder: string, depth: number) => {
    for (const entry of inOrder(listings.get(folder)?.entries ?? [])) {
      const path = joinPath(folder, entry.name);
      const isOpen = entry.kind === "directory" && open.has(path);
      rows.push({ path, name: entry.name, kind: entry.kind, depth, isOpen, isLoading: isOpen && !listings.has(path), entry });
      if (isOpen) add(path, depth + 1);
    }
  };
  add(root, 0);
  return rows;
}

function inOrder(entries: readonly Entry[]): Entry[] {
  const rank = ({ kind }: Entry) => (kind === "directory" ? 0 : 1);
  return [...entries].sort((left, right) => rank(left) - rank(right) || left.name.localeCompare(right.name, "en", { numeric: true }));
}
