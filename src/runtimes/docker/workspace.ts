import { access, constants, realpath, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { CaissonError } from "../../contract/error.ts";
import type { SandboxSpec } from "../../contract/sandbox.ts";
import { refuseLayer } from "../../sandbox/spec.ts";
import type { StateView } from "../../sandbox/state-places.ts";
import { workspaceInside } from "./container-config.ts";
import type { EngineFacts } from "./engine-facts.ts";

/** How a sandbox gets its workspace: a copy put in before it starts, a folder of the host's, or nothing. */
export type WorkspacePlan =
  | { kind: "none" }
  /** `exclude` are paths relative to the folder that do not go in at all. */
  | { kind: "staged"; folder: string; exclude: string[] }
  /** `covered` likewise, and they are seen empty. */
  | { kind: "bound"; folder: string; readOnly: boolean; ownerUid: number | null; covered: string[] };

/** Checks the folder and what may be done with it. Throws `not_found`, `invalid`, `denied`, `unsupported`. */
export async function planWorkspace(options: {
  spec: SandboxSpec;
  facts: EngineFacts;
  reasons: Readonly<Record<string, string>>;
  state: StateView;
}): Promise<WorkspacePlan> {
  const { spec, facts, reasons, state } = options;
  const { workspace } = spec;
  refuseLayer(spec, "docker");
  if (workspace.kind === "empty") return { kind: "none" };
  const folder = await existingFolder(resolve(workspace.path));
  state.refuse(folder, workspace);
  const kept = state.placesIn(folder, { mountsBelow: workspace.access === "overlay" }).map(({ path }) => path);
  switch (workspace.access) {
    case "overlay": {
      if (spec.template.kind === "snapshot") {
        throw new CaissonError("unsupported", "a snapshot has a workspace of its own, a folder cannot be laid over it", {
          hint: "Leave the workspace out, or give it as :rw or :ro.",
        });
      }
      return { kind: "staged", folder, exclude: [...spec.deniedPaths.flatMap(insideWorkspace), ...kept] };
    }
    case "ro":
      return { kind: "bound", folder, readOnly: true, ownerUid: null, covered: kept };
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
      return { kind: "bound", folder, readOnly: false, ownerUid: uid, covered: kept };
    }
  }
}

/** The part of a path below /workspace, as a list of none or one. */
function insideWorkspace(path: string): string[] {
  return path.startsWith(`${workspaceInside}/`) ? [path.slice(workspaceInside.length + 1)] : [];
}

async function existingFolder(path: string): Promise<string> {
  try {
    const folder = await realpath(path);
    if (!(await stat(folder)).isDirectory()) {
      throw new CaissonError("invalid", `the workspace ${path} is not a folder`, { hint: "Give the folder that holds it." });
    }
    await access(folder, constants.R_OK | constants.X_OK);
    return folder;
  } catch (error) {
    if (error instanceof CaissonError) throw error;
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "ENOENT" || code === "ENOTDIR")
      throw new CaissonError("not_found", `there is no folder ${path} to be the workspace`, { cause: error });
    throw new CaissonError("denied", `the workspace ${path} cannot be read`, { cause: error, hint: "Check its permissions." });
  }
}
