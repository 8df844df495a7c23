import { realpathSync, statSync } from "node:fs";
import { isAbsolute } from "node:path";
import { CaissonError } from "../contract/error.ts";
import type { FolderMount, SandboxSpec } from "../contract/sandbox.ts";
import { WORKSPACE } from "./path.ts";
import type { StateView } from "./state-places.ts";

/** What a spec shares of the host's: the workspace's folder, if it has one, and the further ones. */
export function sharedFolders({ workspace, mounts }: Pick<SandboxSpec, "workspace" | "mounts">): FolderMount[] {
  const own = workspace.kind === "folder" ? [{ path: workspace.path, target: WORKSPACE, access: workspace.access }] : [];
  return [...own, ...mounts];
}

/** Whether anything written inside lands in a folder of the host's. */
export function writesToHost(spec: Pick<SandboxSpec, "workspace" | "mounts">): boolean {
  return sharedFolders(spec).some(({ access }) => access === "rw");
}

/** The part of a path below a folder; null for a path elsewhere, and for the folder itself. */
export function pathBelow(path: string, folder: string): string | null {
  return path.startsWith(`${folder}/`) && path.length > folder.length + 1 ? path.slice(folder.length + 1) : null;
}

/** With all that is in them: the sandbox's own, or made anew when it starts. */
const reservedTrees =
  "/.caisson /bin /boot /dev /etc /lib /lib32 /lib64 /libx32 /proc /run /sbin /sys /tmp /usr /var/lock /var/run /var/tmp /workspace".split(
    " ",
  );
/** By themselves: what a folder would hide there is needed. */
const reservedFolders = "/ /home /home/user /root /var".split(" ");

/**
 * Mounts that can be made: each in a place of its own that no sandbox needs for itself, in the shortest spelling. Looks
 * at the names only. Throws `invalid`.
 */
export function checkMounts(mounts: readonly FolderMount[]): FolderMount[] {
  const checked = mounts.map((mount) => ({ ...mount, target: checkedTarget(mount.target) }));
  for (const [index, { target }] of checked.entries()) {
    const other = checked.slice(0, index).find((before) => isWithin(target, before.target) || isWithin(before.target, target));
    if (other === undefined) continue;
    const where =
      other.target === target ? `two folders are to be mounted at ${target}` : `the mounts ${other.target} and ${target} overlap`;
    throw new CaissonError("invalid", where, { hint: "Give each a place of its own: DIR:/another/path." });
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
    throw new CaissonError("invalid", `the mount's path ${JSON.stringify(target)} has control characters`);
  }
  const taken = reservedTrees.find((tree) => isWithin(shortest, tree)) ?? reservedFolders.find((folder) => shortest === folder);
  if (taken === undefined) return shortest;
  throw new CaissonError("invalid", `no folder can be mounted at ${shortest}: sandboxes have ${taken} for themselves`, {
    hint: "Choose another path, such as /mnt/data; the workspace is given with --workspace.",
  });
}

/**
 * The same with folders that are there, as absolute paths without links: whoever changes a link later changes nothing.
 * Throws `invalid`, `not_found`, `denied`.
 */
export function resolveMounts(mounts: readonly FolderMount[], options: { state: () => StateView }): FolderMount[] {
  if (mounts.length === 0) return [];
  const state = options.state();
  return checkMounts(mounts).map((mount) => {
    const path = realFolder(mount.path, { what: "the folder to mount" });
    // Not even an empty folder of the state folder's; an upload is somebody's, and only to be read.
    state.refuse(path, { access: mount.access === "rw" ? "rw" : "ro" });
    return { ...mount, path };
  });
}

/** A folder that is there, as an absolute path without links. Throws `invalid`, `not_found`, `denied`. */
export function realFolder(path: string, { what }: { what: string }): string {
  if (!isAbsolute(path) || path.includes("\0")) {
    throw new CaissonError("invalid", `${what} ${JSON.stringify(path)} is not an absolute path`, {
      hint: "Give the folder's absolute path.",
    });
  }
  try {
    const real = realpathSync(path);
    if (statSync(real).isDirectory()) return real;
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? cause.code : "";
    if (code === "EACCES" || code === "EPERM") throw new CaissonError("denied", `${what} ${path} cannot be read`, { cause });
    throw new CaissonError("not_found", `${what} ${path} does not exist`, { hint: "Make the folder first, or check the path.", cause });
  }
  throw new CaissonError("invalid", `${what} ${path} is not a folder`, { hint: "Give the folder itself, not a file in it." });
}

export function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder === "/" ? "/" : `${folder}/`);
}
