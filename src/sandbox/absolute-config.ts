import { resolve } from "node:path";
import type { SandboxConfig } from "../contract/sandbox/sandbox.ts";
import { absoluteSecrets } from "../contract/secret/absolute-secrets.ts";

/** Resolves relative paths against the current directory: runtimes only accept absolute ones. */
export function withAbsolutePaths(spec: SandboxConfig): SandboxConfig {
  const { workspace } = spec;
  const secrets = absoluteSecrets(spec.secrets, ".");
  const mounts = spec.mounts.map((mount) => ({ ...mount, path: resolve(mount.path) }));
  return { ...spec, secrets, mounts, workspace: workspace.kind === "empty" ? workspace : { ...workspace, path: resolve(workspace.path) } };
}
