import { existsSync } from "node:fs";
import { join } from "node:path";
import type { SandboxSpec } from "../../../contract/sandbox.ts";
import type { Basis } from "../details.ts";
import type { Identity } from "../identity/identity.ts";
import type { PlanRecord } from "../launch/launcher.ts";
import { sandboxUser } from "../template/etc-files.ts";
import { storedLayer } from "./layers.ts";

type Spec = Pick<SandboxSpec, "workspace">;

/**
 * Where the changes to the home folder are, apart from those to the rest of the root; null where they are among those.
 * Whoever keeps a workspace beyond its sandbox keeps them, too: logins, histories and caches of what works there.
 */
export function homeFolders(
  { workspace }: Spec,
  { disk, basis }: { disk: boolean; basis: Pick<Basis, "homeLayers"> },
): { upper: string; work: string } | null {
  const layer = workspace.kind === "folder" ? workspace.layer : undefined;
  if (layer === undefined) return basis.homeLayers.length === 0 ? null : inSandbox(disk);
  // By this name it is kept on a layer's disk.
  return disk ? { upper: "disk/workspace-home-upper", work: "disk/workspace-home-work" } : lastingHome(layer);
}

function inSandbox(disk: boolean): { upper: string; work: string } {
  const at = (name: string) => (disk ? `disk/${name}` : name);
  return { upper: at("home-upper"), work: at("home-work") };
}

/** Of a layer that outlives its sandboxes. */
function lastingHome(layer: string): { upper: string; work: string } {
  return { upper: join(layer, "home-upper"), work: join(layer, "home-work") };
}

/** What of it is there. */
export function homeOfLayer(layer: string): string[] {
  return Object.values(lastingHome(layer)).filter((path) => existsSync(path));
}

/** Records that mount it over the root's own. */
export function homeRecords(spec: Spec, options: { identity: Identity; disk: boolean; basis: Basis }): PlanRecord[] {
  const folders = homeFolders(spec, options);
  if (folders === null) return [];
  const { homeLayers } = options.basis;
  return [
    ["mkdir", folders.upper, "755", 1000, 1000],
    ["mkdir", folders.work, "755", 1000, 1000],
    ...homeLayers.flatMap((dir, index) => storedLayer(`home-${index}`, dir, options.identity)),
    ["home", homeLayers.map((_, index) => `home-${index}`).join(":"), folders.upper, folders.work, sandboxUser.home],
  ];
}
