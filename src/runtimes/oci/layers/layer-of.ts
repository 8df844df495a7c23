import type { SandboxConfig } from "../../../contract/sandbox/sandbox.ts";

/** Files on a session's disk that begin with this prefix outlive the sandbox. */
export const LASTING_PREFIX = "workspace-";

/** Returns the layer folder in which a sandbox's changes outlive it. A view of a session writes nothing to it. */
export function layerOf({ workspace }: Pick<SandboxConfig, "workspace">): string | undefined {
  return workspace.kind === "folder" && workspace.view === undefined ? workspace.layer : undefined;
}
