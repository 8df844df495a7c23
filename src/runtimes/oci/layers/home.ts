import { existsSync } from "node:fs";
import { join } from "node:path";
import type { SandboxConfig } from "../../../contract/sandbox/sandbox.ts";
import type { Basis } from "../details.ts";
import type { Identity } from "../identity/identity.ts";
import type { PlanRecord } from "../launch/launcher.ts";
import { sandboxUser } from "../template/etc-files.ts";
import { storedLayer } from "./layers.ts";

type WorkspaceConfig = Pick<SandboxConfig, "workspace">;

/**
 * Returns where changes to the home folder are stored, or null if they are stored with the changes to the rest of the
 * root. A workspace that outlives its sandbox keeps them too: logins, histories and caches.
 */
export function homeFolders(
  { workspace }: WorkspaceConfig,
  { disk, basis }: { disk: boolean; basis: Pick<Basis, "homeLayers"> },
): { upper: string; work: string } | null {
  const layer = workspace.kind === "folder" ? workspace.layer : undefined;
  if (layer === undefined) return basis.homeLayers.length === 0 ? null : inSandbox(disk);
  // On a layer's disk, only files with the prefix `workspace-` outlive the sandbox.
  return disk ? { upper: "disk/workspace-home-upper", work: "disk/workspace-home-work" } : lastingHome(layer);
}

function inSandbox(disk: boolean): { upper: string; work: string } {
  const at = (name: string) => (disk ? `disk/${name}` : name);
  return { upper: at("home-upper"), work: at("home-work") };
}

/** Returns the home folders of a layer that outlives its sandboxes. */
function lastingHome(layer: string): { upper: string; work: string } {
  return { upper: join(layer, "home-upper"), work: join(layer, "home-work") };
}

/** Returns the home folders that exist in a layer. */
export function homeOfLayer(layer: string): string[] {
  return Object.values(lastingHome(layer)).filter((path) => existsSync(path));
}

/** Returns records that mount the home folder over the root's. */
export function homeRecords(config: WorkspaceConfig, options: { identity: Identity; disk: boolean; basis: Basis }): PlanRecord[] {
  const folders = homeFolders(config, options);
  if (folders === null) return [];
  const { homeLayers } = options.basis;
  return [
    ["mkdir", folders.upper, "755", 1000, 1000],
    ["mkdir", folders.work, "755", 1000, 1000],
    ...homeLayers.flatMap((dir, index) => storedLayer(`home-${index}`, dir, options.identity)),
    ["home", homeLayers.map((_, index) => `home-${index}`).join(":"), folders.upper, folders.work, sandboxUser.home],
  ];
}
