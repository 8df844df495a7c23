import { resolve } from "node:path";
import { absoluteSecrets } from "../contract/absolute-secrets.ts";
import type { SandboxSpec } from "../contract/sandbox.ts";

/** Relative paths are taken from where the program runs; runtimes only know absolute ones. */
export function withAbsolutePaths(spec: SandboxSpec): SandboxSpec {
  const { workspace } = spec;
  const secrets = absoluteSecrets(spec.secrets, ".");
  const mounts = spec.mounts.map((mount) => ({ ...mount, path: resolve(mount.path) }));
  return { ...spec, secrets, mounts, workspace: workspace.kind === "empty" ? workspace : { ...workspace, path: resolve(workspace.path) } };
}
