import { resolve } from "node:path";
import { type Copied, copyIn, copyOut } from "./copy.ts";
import { WORKSPACE } from "./path.ts";
import type { OwnedSandbox } from "./sandbox.ts";

/**
 * Copies files into a sandbox before work, unless they are already shared. Callers always stage, so they need not know
 * whether a runtime shares the host's file system. Returns null if there was nothing to do.
 */
export async function stageIn(
  sandbox: OwnedSandbox,
  folder: string,
  options: { exclude?: readonly string[] } = {},
): Promise<Copied | null> {
  return mountOf(sandbox, folder) === null ? copyIn(sandbox, folder, WORKSPACE, options) : null;
}

/**
 * Copies files back. Files that were removed inside remain in the folder: staging adds and replaces, but does not
 * remove. Throws what `copyOut` throws.
 */
export async function stageOut(
  sandbox: OwnedSandbox,
  folder: string,
  options: { exclude?: readonly string[]; bytesMax?: number; entriesMax?: number } = {},
): Promise<Copied | null> {
  return mountOf(sandbox, folder) === "rw" ? null : copyOut(sandbox, WORKSPACE, folder, options);
}

/** Returns how the folder is visible inside, or null if it is not. */
function mountOf(sandbox: OwnedSandbox, folder: string): "overlay" | "rw" | "ro" | null {
  const { workspace } = sandbox.info;
  return workspace.kind === "folder" && resolve(workspace.path) === resolve(folder) ? workspace.access : null;
}
