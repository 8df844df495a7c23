import { resolve } from "node:path";
import { type Copied, copyIn, copyOut } from "./copy.ts";
import { WORKSPACE } from "./path.ts";
import type { OwnedSandbox } from "./sandbox.ts";

/**
 * Staging: called always, before and after work in a sandbox, and a no-op where the files are shared already. So the
 * layers above need not know whether a runtime shares the host's file system. Null means that nothing had to be done.
 */
export async function stageIn(
  sandbox: OwnedSandbox,
  folder: string,
  options: { exclude?: readonly string[] } = {},
): Promise<Copied | null> {
  return mountOf(sandbox, folder) === null ? copyIn(sandbox, folder, WORKSPACE, options) : null;
}

/**
 * Brings files back. What was removed inside stays in the folder: staging adds and replaces, it does not remove. Throws
 * what `copyOut` throws.
 */
export async function stageOut(
  sandbox: OwnedSandbox,
  folder: string,
  options: { exclude?: readonly string[]; bytesMax?: number; entriesMax?: number } = {},
): Promise<Copied | null> {
  return mountOf(sandbox, folder) === "rw" ? null : copyOut(sandbox, WORKSPACE, folder, options);
}

/** How the folder is visible inside; null when it is not. */
function mountOf(sandbox: OwnedSandbox, folder: string): "overlay" | "rw" | "ro" | null {
  const { workspace } = sandbox.info;
  return workspace.kind === "folder" && resolve(workspace.path) === resolve(folder) ? workspace.access : null;
}
