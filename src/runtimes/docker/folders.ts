import { access, constants, realpath, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { CaissonError } from "../../contract/error/error.ts";
import type { SandboxConfig } from "../../contract/sandbox/sandbox.ts";
import type { FolderMount } from "../../contract/sandbox/sandbox-fields.ts";
import { linkedRepository, repositoryProblem } from "../../sandbox/linked-repository.ts";
import { refuseLayer } from "../../sandbox/sandbox-config.ts";
import { checkMounts, pathBelow, sharedFolders } from "../../sandbox/shared-folders.ts";
import type { StateView } from "../../sandbox/state-places.ts";
import { workspaceInside } from "./container-config.ts";
import type { EngineFacts } from "./engine-facts.ts";

/** How a sandbox gets a folder: as a copy that is put in before the start, or as a bound host folder. */
export type FolderPlan =
  /** `exclude` lists paths relative to the folder that are not copied. */
  | { kind: "staged"; target: string; folder: string; exclude: string[] }
  /** `covered` lists paths relative to the folder that appear empty inside. */
  | { kind: "bound"; target: string; folder: string; readOnly: boolean; ownerUid: number | null; covered: string[] };

interface PlanOptions {
  config: SandboxConfig;
  facts: EngineFacts;
  reasons: Readonly<Record<string, string>>;
  state: StateView;
}

/**
 * Checks the workspace folder and the other shared folders, and plans how the sandbox gets them. With `forked`, the
 * image already contains the copies. Throws `not_found`, `invalid`, `denied`, `unsupported`.
 */
export async function planFolders(options: PlanOptions & { forked: boolean }): Promise<FolderPlan[]> {
  const { config, forked } = options;
  refuseLayer(config, "docker");
  const wanted = sharedFolders({ ...config, mounts: checkMounts(config.mounts) }).filter(({ access }) => !forked || access !== "overlay");
  const plans = await Promise.all(wanted.map((mount) => planFolder(mount, options)));
  const owners = new Set(plans.flatMap((plan) => (plan.kind === "bound" ? (plan.ownerUid ?? []) : [])));
  if (owners.size > 1) {
    throw new CaissonError("unsupported", "one sandbox cannot have read-write folders of several owners", {
      hint: "Share all but one as ro or overlay, or use the oci runtime: programs inside run with the id of one owner.",
    });
  }
  return plans;
}

/**
 * For a workspace that is a linked work tree, plans a copy of its repository where git inside looks for it. A fork
 * already has that copy. `problem` says why git will not work inside.
 */
export function planRepository(
  folders: readonly FolderPlan[],
  { config, state, forked }: Pick<PlanOptions, "config" | "state"> & { forked: boolean },
): { plans: FolderPlan[]; problem: string | null } {
  const workspace = folders.find(({ target }) => target === workspaceInside);
  const found = workspace === undefined || forked ? { kind: "none" as const } : linkedRepository(workspace.folder);
  const usedTargets = folders.filter((each) => each !== workspace).map(({ target }) => target);
  const problem = repositoryProblem(found, usedTargets, () => state);
  if (problem !== null || found.kind !== "linked") return { plans: [], problem };
  if (config.template.kind === "snapshot") return { plans: [], problem: `the snapshot already has files at ${found.target}` };
  const { source: folder, target } = found;
  const statePaths = state.placesIn(folder, { mountsBelow: true }).map(({ path }) => path);
  const exclude = [...config.deniedPaths.flatMap((path) => pathBelow(path, target) ?? []), ...statePaths];
  return { plans: [{ kind: "staged", target, folder, exclude }], problem: null };
}

async function planFolder(mount: FolderMount, { config, facts, reasons, state }: PlanOptions): Promise<FolderPlan> {
  const { target, access } = mount;
  const isWorkspace = target === workspaceInside;
  const folder = await existingFolder(resolve(mount.path), isWorkspace ? "the workspace" : "the folder to mount");
  state.refuse(folder, { access: isWorkspace ? access : "rw" });
  const statePaths = state.placesIn(folder, { mountsBelow: access === "overlay" }).map(({ path }) => path);
  switch (access) {
    case "overlay": {
      if (config.template.kind === "snapshot") {
        throw new CaissonError("unsupported", `the snapshot already has files at ${target}, so no folder can be mounted there`, {
          hint: "Leave out the folder, or share it as :rw or :ro.",
        });
      }
      return {
        kind: "staged",
        target,
        folder,
        exclude: [...config.deniedPaths.flatMap((path) => pathBelow(path, target) ?? []), ...statePaths],
      };
    }
    case "ro":
      return { kind: "bound", target, folder, readOnly: true, ownerUid: null, covered: statePaths };
    case "rw": {
      if (facts.rootless || facts.remappedRoot !== null) {
        throw new CaissonError("unsupported", `the folder ${folder} cannot be shared read-write`, { hint: reasons.rw ?? "" });
      }
      // Here root inside is the machine's root: its files in the folder belong to root on the machine, and file
      // capabilities take effect there.
      if (config.allowRoot) {
        throw new CaissonError("unsupported", `the folder ${folder} cannot be shared read-write with a sandbox that allows root`, {
          hint: "Leave out --allow-root, use overlay, or use the oci runtime. This engine uses no user namespace, so root inside is the machine's root.",
        });
      }
      const { uid } = await stat(folder);
      if (uid === 0) {
        throw new CaissonError(
          "unsupported",
          `the folder ${folder} belongs to root, and no program in a sandbox runs as the machine's root`,
          {
            hint: "Change its owner (`chown`), use overlay or ro, or use the oci runtime, which maps user ids.",
          },
        );
      }
      return { kind: "bound", target, folder, readOnly: false, ownerUid: uid, covered: statePaths };
    }
  }
}

async function existingFolder(path: string, what: string): Promise<string> {
  try {
    const folder = await realpath(path);
    if (!(await stat(folder)).isDirectory()) {
      throw new CaissonError("invalid", `${what} ${path} is not a folder`, { hint: "Name the folder that contains it." });
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
