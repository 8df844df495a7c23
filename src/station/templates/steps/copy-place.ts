import { posix } from "node:path";
import { CaissonError } from "../../../contract/error/error.ts";
import type { OwnedSandbox } from "../../../sandbox/sandbox.ts";

/** A COPY or ADD with its variables replaced. */
export interface ExpandedCopy {
  sources: readonly string[];
  target: string;
  /** Whether the target must be a folder. */
  isFolder: boolean;
  chown: string | null;
  mode: number | undefined;
  line: number;
}

export interface Place {
  folder: string;
  /** The name of the only file; null if files keep their names. */
  name: string | null;
}

/** Finds where files go: into the target if it is a folder, or else to the target itself. */
export async function placeOf(sandbox: OwnedSandbox, target: string, { isFolder }: { isFolder: boolean }): Promise<Place> {
  if (isFolder || target === "/" || (await isFolderInside(sandbox, target))) return { folder: target, name: null };
  return { folder: posix.dirname(target), name: posix.basename(target) };
}

async function isFolderInside(sandbox: OwnedSandbox, path: string): Promise<boolean> {
  try {
    return (await sandbox.stat(path, { user: "root" })).kind === "directory";
  } catch (error) {
    if (error instanceof CaissonError && (error.code === "not_found" || error.code === "invalid")) return false;
    throw error;
  }
}
