import { join } from "node:path";
import { CaissonError } from "../../contract/error/error.ts";
import type { SandboxConfig } from "../../contract/sandbox/sandbox.ts";
import { lstatOrNull } from "../../lib/paths.ts";
import { pathBelow } from "../../sandbox/shared-folders.ts";
import { workspaceInside } from "./container-config.ts";
import type { Engine } from "./engine.ts";
import { engineError, statusOf } from "./engine-error.ts";
import type { FolderPlan } from "./folders.ts";
import type { SmallEntry } from "./small-archive.ts";

/** Mounted fresh at the start, so paths below these do not exist yet and cannot be covered. */
const freshFolders = ["/tmp/", "/dev/", "/.caisson/"];

/**
 * Returns entries that create missing read-only and denied paths before the start: the engine silently ignores missing
 * ones, and sandboxed programs could create them later. Throws `unsupported` and `not_found` for a path that cannot be
 * protected.
 */
export async function placeholders(options: {
  engine: Engine;
  container: string;
  config: SandboxConfig;
  folders: readonly FolderPlan[];
}): Promise<SmallEntry[]> {
  const { engine, container, config, folders } = options;
  const entries: SmallEntry[] = [];
  for (const path of [...config.readOnlyPaths, ...config.deniedPaths]) {
    if (freshFolders.some((folder) => path.startsWith(folder))) {
      throw new CaissonError("unsupported", `${path} cannot be made read-only or denied: its folder is recreated when the sandbox starts`);
    }
    const plan = folders.find(({ target }) => pathBelow(path, target) !== null);
    if (plan !== undefined) {
      const below = path.slice(plan.target.length + 1);
      const found = kindOnHost(join(plan.folder, below));
      if (plan.kind === "bound") requireBound({ path, found, plan });
      else if (found === null || plan.exclude.includes(below)) entries.push(empty(path, found ?? "directory"));
      continue;
    }
    if (path !== workspaceInside && !(await existsInside({ engine, container, path }))) entries.push(empty(path, "directory"));
  }
  return entries;
}

function requireBound(options: { path: string; found: string | null; plan: { folder: string; readOnly: boolean } }): void {
  const { path, found, plan } = options;
  if (found !== null || plan.readOnly) return;
  throw new CaissonError("not_found", `${path} is marked read-only or denied, but does not exist in ${plan.folder}`, {
    hint: "Create it first: nothing is created in a read-write folder without your request.",
  });
}

function empty(path: string, kind: "file" | "directory"): SmallEntry {
  return { name: path.slice(1), kind, mode: kind === "file" ? 0o644 : 0o755, uid: 0, gid: 0 };
}

function kindOnHost(path: string): "file" | "directory" | null {
  const info = lstatOrNull(path);
  if (info === null) return null;
  return info.isDirectory() ? "directory" : "file";
}

async function existsInside({ engine, container, path }: { engine: Engine; container: string; path: string }): Promise<boolean> {
  try {
    await engine.docker.getContainer(container).infoArchive({ path });
    return true;
  } catch (error) {
    if (statusOf(error) === 404) return false;
    throw engineError(error, { what: `looking for ${path} in the image`, socketPath: engine.socketPath });
  }
}
