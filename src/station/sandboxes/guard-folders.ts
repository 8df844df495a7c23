import { existsSync } from "node:fs";
import { join } from "node:path";
import type { SandboxConfig } from "../../contract/sandbox/sandbox.ts";
import type { WorkspaceGuard } from "../../contract/workspace/workspace-guard.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import { sharedFolders } from "../../sandbox/shared-folders.ts";
import { refuseWrongPlace } from "../../workspace/wrong-place.ts";
import { checkedMounts, guardWritable, hideCredentials } from "./guard-workspace.ts";

interface GuardOptions {
  home: string;
  stateDir: string;
  runtime: Runtime;
  /** Absent: the folders are shared as they are. */
  guard: WorkspaceGuard | undefined;
  notice: (text: string) => void;
}

/**
 * Rolls back interrupted applies in the shared folders, and adds what the guard hides and protects in them. Throws
 * `invalid` for a folder that must not be shared, and `unsupported` for restrictions that the runtime cannot enforce.
 */
export async function guardFolders(
  config: SandboxConfig,
  { guard, runtime, home, stateDir, notice }: GuardOptions,
): Promise<SandboxConfig> {
  if (existsSync(join(stateDir, "applies"))) {
    const { settleFolder } = await import("../../workspace/apply-recovery.ts");
    for (const { path } of sharedFolders(config)) await settleFolder(path, { stateDir });
  }
  if (guard === undefined) return config;
  const places = { home, stateDir };
  if (config.workspace.kind === "folder" && !guard.named) refuseWrongPlace(config.workspace.path, { places, option: "workspace" });
  const checked = { ...config, mounts: checkedMounts(config.mounts, places) };
  const capabilities = await runtime.capabilities();
  const rules = { hide: guard.hide, show: guard.show };
  const hidden = await hideCredentials(checked, { folders: sharedFolders(checked), rules, capabilities, notice });
  return guard.allowHooks ? hidden : guardWritable(hidden, { places, capabilities });
}
