import { resolve } from "node:path";
import type { SandboxConfig } from "../contract/sandbox/sandbox.ts";
import { absoluteSecrets } from "../contract/secret/absolute-secrets.ts";

/** Resolves relative paths against the current directory: runtimes only accept absolute ones. */
export function withAbsolutePaths(config: SandboxConfig): SandboxConfig {
  const { workspace } = config;
  const secrets = absoluteSecrets(config.secrets, ".");
  const mounts = config.mounts.map((mount) => ({ ...mount, path: resolve(mount.path) }));
  return {
    ...config,
    secrets,
    mounts,
    workspace: workspace.kind === "empty" ? workspace : { ...workspace, path: resolve(workspace.path) },
  };
}
