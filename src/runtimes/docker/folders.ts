import { access, constants, realpath, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { CaissonError } from "../../contract/error.ts";
import type { FolderMount, SandboxSpec } from "../../contract/sandbox.ts";
import { linkedRepository, repositoryProblem } from "../../sandbox/linked-repository.ts";
import { checkMounts, pathBelow, sharedFolders } from "../../sandbox/shared-folders.ts";
import { refuseLayer } from "../../sandbox/spec.ts";
import type { StateView } from "../../sandbox/state-places.ts";
import { workspaceInside } from "./container-config.ts";
import type { EngineFacts } from "./engine-facts.ts";

/** How a sandbox gets a folder: as a copy put in before it starts, or the host's own. */
export type FolderPlan =
  /** `exclude` are paths relative to the folder that do not go in at all. */
  | { kind: "staged"; target: string; folder: string; exclude: string[] }
  /** `covered` likewise, and they are seen empty. */
  | { kind: "bound"; target: string; folder: string; readOnly: boolean; ownerUid: number | null; covered: string[] };

interface PlanOptions {
  spec: SandboxSpec;
  facts: EngineFacts;
  reasons: Readonly<Record<string, string>>;
  state: StateView;
}

/**
 * Checks the workspace's folder and the further ones, and what may be done with them. `forked`: copies are in the image
 * already. Throws `not_found`, `invalid`, `denied`, `unsupported`.
 */
export async function planFolders(options: PlanOptions & { forked: boolean }): Promise<FolderPlan[]> {
  const { spec, forked } = options;
  refuseLayer(spec, "docker");
  const wanted = sharedFolders({ ...spec, mounts: checkMounts(spec.mounts) }).filter(({ access }) => !forked || access !== "overlay");
  const plans = await Promise.all(wanted.map((mount) => planFolder(mount, options)));
  const owners = new Set(plans.flatMap((plan) => (plan.kind === "bound" ? (plan.ownerUid ?? []) : [])));
  if (owners.size > 1) {
    throw new CaissonError("unsupported", "folders of several owners cannot be given read-write to one sandbox", {
      hint: "Work in it has the id of the one owner. Give all but one as ro or overlay, or use the oci runtime.",
    });
  }
  return plans;
}

/**
 * The repository of a workspace that is a linked work tree, as a copy where git inside looks for it; a fork has its
 * copy already. `problem` says why git will not work inside.
 */
export function planRepository(
  folders: readonly FolderPlan[],
  { spec, state, forked }: Pick<PlanOptions, "spec" | "state"> & { forked: boolean },
): { plans: FolderPlan[]; problem: string | null } {
  const workspace = folders.find(({ target }) => target === workspaceInside);
  const found = workspace === undefined || forked ? { kind: "none" as const } : linkedRepository(workspace.folder);
  const taken = folders.filter((each) => each !== workspace).map(({ target }) => target);
  const problem = repositoryProblem(found, taken, () => state);
  if (problem !== null || found.kind !== "linked") return { plans: [], problem };
  if (spec.template.kind === "snapshot") return { plans: [], problem: `a snapshot has files of its own at ${found.target}` };
  const { source: folder, target } = found;
  const kept = state.placesIn(folder, { mountsBelow: true }).map(({ path }) => path);
  const exclude = [...spec.deniedPaths.flatMap((path) => pathBelow(path, target) ?? []), ...kept];
  return { plans: [{ kind: "staged", target, folder, exclude }], problem: null };
}

async function planFolder(mount: FolderMount, { spec, facts, reasons, state }: PlanOptions): Promise<FolderPlan> {
  const { target, access } = mount;
  const isWorkspace = target === workspaceInside;
  const folder = await existingFolder(resolve(mount.path), isWorkspace ? "the workspace" : "the folder to mount");
  state.refuse(folder, { access: isWorkspace ? access : "rw" });
  const kept = state.placesIn(folder, { mountsBelow: access === "overlay" }).map(({ path }) => path);
  switch (access) {
    case "overlay": {
      if (spec.template.kind === "snapshot") {
        throw new CaissonError("unsupported", `a snapshot has files of its own at ${target}, a folder cannot be laid over it`, {
          hint: "Leave the folder out, or give it as :rw or :ro.",
        });
      }
      return { kind: "staged", target, folder, exclude: [...spec.deniedPaths.flatMap((path) => pathBelow(path, target) ?? []), ...kept] };
    }
    case "ro":
      return { kind: "bound", target, folder, readOnly: true, ownerUid: null, covered: kept };
    case "rw": {
      if (facts.rootless || facts.remappedRoot !== null) {
        throw new CaissonError("unsupported", `the folder ${folder} cannot be given read-write`, { hint: reasons.rw ?? "" });
      }
      // Here root inside is the machine's root: a file of root's in the folder is one on the machine, and capabilities
      // of a file count there.
      if (spec.allowRoot) {
        throw new CaissonError("unsupported", `the folder ${folder} cannot be given read-write to a sandbox that allows root`, {
          hint: "The engine uses no user namespace, so root inside is the machine's root. Leave out --allow-root, use overlay, or use the oci runtime.",
        });
      }
      const { uid } = await stat(folder);
      if (uid === 0) {
        throw new CaissonError("unsupported", `the folder ${folder} belongs to root, and nothing in a sandbox runs as the machine's root`, {
          hint: "Give it to a user (`chown`), use overlay or ro, or use the oci runtime, which maps user ids.",
        });
      }
      return { kind: "bound", target, folder, readOnly: false, ownerUid: uid, covered: kept };
    }
  }
}

async function existingFolder(path: string, what: string): Promise<string> {
  try {
    const folder = await realpath(path);
    if (!(await stat(folder)).isDirectory()) {
      throw new CaissonError("invalid", `${what} ${path} is not a folder`, { hint: "Give the folder that holds it." });
    }
    await access(folder, constants.R_OK | constants.X_OK);
    return folder;
  } catch (error) {
    if (error instanceof CaissonError) throw error;
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "ENOENT" || code === "ENOTDIR") throw new CaissonError("not_found", `${what} ${path} does not exist`, { cause: error });
    throw new CaissonError("denied", `${what} ${path} cannot be read`, { cause: error, hint: "Check its permissions." });
  }
}
