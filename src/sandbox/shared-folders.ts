import { realpathSync, statSync } from "node:fs";
import { isAbsolute } from "node:path";
import { CaissonError } from "../contract/error/error.ts";
import type { SandboxConfig } from "../contract/sandbox/sandbox.ts";
import type { FolderMount } from "../contract/sandbox/sandbox-fields.ts";
import { isWithin } from "../lib/paths.ts";
import { WORKSPACE } from "./path.ts";
import type { StateView } from "./state-places.ts";

/** Returns the host folders that a config shares: the workspace's folder, if it has one, and the mounts. */
export function sharedFolders({ workspace, mounts }: Pick<SandboxConfig, "workspace" | "mounts">): FolderMount[] {
  const own = workspace.kind === "folder" ? [{ path: workspace.path, target: WORKSPACE, access: workspace.access }] : [];
  return [...own, ...mounts];
}

/** Whether writes inside change a host folder. */
export function writesToHost(config: Pick<SandboxConfig, "workspace" | "mounts">): boolean {
  return sharedFolders(config).some(({ access }) => access === "rw");
}

/** Returns the part of a path below a folder, or null for a path elsewhere and for the folder itself. */
export function pathBelow(path: string, folder: string): string | null {
  return path.startsWith(`${folder}/`) && path.length > folder.length + 1 ? path.slice(folder.length + 1) : null;
}

/** Reserved with everything in them: they belong to the sandbox, or it recreates them when it starts. */
const reservedTrees =
  "/.caisson /bin /boot /dev /etc /lib /lib32 /lib64 /libx32 /proc /run /sbin /sys /tmp /usr /var/lock /var/run /var/tmp /workspace".split(
    " ",
  );
/** Reserved without their subfolders: a mount would hide files that are needed there. */
const reservedFolders = "/ /home /home/user /root /var".split(" ");

/**
 * Checks that mounts are possible: each at its own path that no sandbox needs. Returns them with normalized paths.
 * Checks only the names. Throws `invalid`.
 */
export function checkMounts(mounts: readonly FolderMount[]): FolderMount[] {
  const checked = mounts.map((mount) => ({ ...mount, target: checkedTarget(mount.target) }));
  for (const [index, { target }] of checked.entries()) {
    const other = checked.slice(0, index).find((before) => isWithin(target, before.target) || isWithin(before.target, target));
    if (other === undefined) continue;
    const where =
      other.target === target ? `two folders would be mounted at ${target}` : `the mounts ${other.target} and ${target} overlap`;
    throw new CaissonError("invalid", where, { hint: "Give each folder its own path: DIR:/another/path." });
  }
  return checked;
}

function checkedTarget(target: string): string {
  const shortest = `/${target
    .split("/")
    .filter((part) => part !== "" && part !== ".")
    .join("/")}`;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: They are what is looked for.
  if (/[\u0000-\u001f\u007f]/.test(shortest)) {
    throw new CaissonError("invalid", `the mount path ${JSON.stringify(target)} contains control characters`);
  }
  const reservedPath = reservedTrees.find((tree) => isWithin(shortest, tree)) ?? reservedFolders.find((folder) => shortest === folder);
  if (reservedPath === undefined) return shortest;
  throw new CaissonError("invalid", `cannot mount a folder at ${shortest}: sandboxes use ${reservedPath} themselves`, {
    hint: "Choose another path, such as /mnt/data; use --workspace for the workspace.",
  });
}

/**
 * Checks mounts and resolves their folders to existing absolute paths without links, so changing a link later has no
 * effect. Throws `invalid`, `not_found`, `denied`.
 */
export function resolveMounts(mounts: readonly FolderMount[], options: { state: () => StateView }): FolderMount[] {
  if (mounts.length === 0) return [];
  const state = options.state();
  return checkMounts(mounts).map((mount) => {
    const path = realFolder(mount.path, { what: "the folder to mount" });
    // Not even an empty folder in the state folder; an upload belongs to a user and is read-only.
    state.refuse(path, { access: mount.access === "rw" ? "rw" : "ro" });
    return { ...mount, path };
  });
}

/** Resolves a folder to an existing absolute path without links. Throws `invalid`, `not_found`, `denied`. */
export function realFolder(path: string, { what }: { what: string }): string {
  if (!isAbsolute(path) || path.includes("\0")) {
    throw new CaissonError("invalid", `${what} ${JSON.stringify(path)} is not an absolute path`, {
      hint: "Pass the folder's absolute path.",
    });
  }
  try {
    const real = realpathSync(path);
    if (statSync(real).isDirectory()) return real;
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? cause.code : "";
    if (code === "EACCES" || code === "EPERM") throw new CaissonError("denied", `${what} ${path} cannot be read`, { cause });
    throw new CaissonError("not_found", `${what} ${path} does not exist`, { hint: "Create the folder first, or check the path.", cause });
  }
  throw new CaissonError("invalid", `${what} ${path} is not a folder`, { hint: "Pass the folder itself, not a file in it." });
}
