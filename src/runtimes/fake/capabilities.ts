import { lstatSync } from "node:fs";
import { CaissonError } from "../../contract/error/error.ts";
import type { Capabilities, SandboxConfig } from "../../contract/sandbox/sandbox.ts";
import { WORKSPACE } from "../../sandbox/path.ts";
import { refuseNetwork, refuseOtherFields } from "../../sandbox/sandbox-config.ts";
import { sharedFolders } from "../../sandbox/shared-folders.ts";

const noLimit = "programs in memory use nothing that could be limited";

export const fakeCapabilities: Capabilities = {
  isolation: 0,
  sharesHostFilesystem: false,
  templates: ["host", "snapshot"],
  workspaceAccess: ["overlay"],
  mounts: ["overlay"],
  workspaceLayer: false,
  limits: { cpus: false, memoryBytes: false, pids: false, diskBytes: false },
  network: ["none", "allow", "open"],
  transparentNetwork: false,
  rootUser: true,
  pause: false,
  snapshot: true,
  paths: false,
  reattach: true,
  reasons: {
    isolation: "nothing runs for real: programs are functions of this process",
    cpus: noLimit,
    memoryBytes: noLimit,
    pids: noLimit,
    diskBytes: noLimit,
    pause: "programs in memory cannot be frozen",
    paths: "files in memory cannot be hidden",
    rw: "files are in memory; the folder is only read once",
    ro: "files are in memory; the folder is only read once",
    transparentNetwork: "programs in memory have no sockets: they connect by port number",
    image: "nothing here could run an image",
  },
};

/** Throws `unsupported` for what the fake runtime cannot do, `invalid` for a path that is not a folder. */
export function checkConfig(config: SandboxConfig): void {
  const no = (what: string, reason: string | undefined) => {
    throw new CaissonError("unsupported", `the fake runtime cannot ${what}: ${reason}`);
  };
  const { reasons } = fakeCapabilities;
  if (config.template.kind === "image") no("start from an image", reasons.image);
  refuseNetwork(config, fakeCapabilities);
  for (const name of ["cpus", "memoryBytes", "pids", "diskBytes"] as const)
    if (config.limits[name] !== undefined) no(`limit ${name}`, reasons[name]);
  if (config.readOnlyPaths.length > 0 || config.deniedPaths.length > 0) no("protect paths", reasons.paths);
  refuseOtherFields(config, {
    runtime: "fake",
    known: ["limits", "allowRoot", "env", "network", "secrets", "gateway", "stationAccess", "mounts"],
  });
  if (config.template.kind === "snapshot" && config.mounts.length > 0) no("mount folders over a snapshot", "it already has files there");
  for (const { path, target, access } of sharedFolders(config)) {
    const what = target === WORKSPACE ? "the workspace" : "the folder to mount";
    if (access !== "overlay") no(`share ${what} as ${access}`, reasons[access]);
    if (!lstatSync(path, { throwIfNoEntry: false })?.isDirectory()) throw new CaissonError("invalid", `${what} ${path} is not a folder`);
  }
}
