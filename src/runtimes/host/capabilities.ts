import { defaultLimits } from "../../contract/defaults/default-limits.ts";
import { CaissonError } from "../../contract/error/error.ts";
import type { Capabilities, Limits, SandboxConfig } from "../../contract/sandbox/sandbox.ts";
import { refuseNetwork, refuseOtherFields } from "../../sandbox/sandbox-config.ts";

const strongerHint = "Use the oci or docker runtime, which can.";
const noLimit = "the host runtime starts plain processes, which nothing accounts for as a group";

export const hostCapabilities: Capabilities = {
  isolation: 0,
  sharesHostFilesystem: true,
  templates: ["host"],
  workspaceAccess: ["rw"],
  mounts: [],
  workspaceLayer: false,
  limits: { cpus: false, memoryBytes: false, pids: false, diskBytes: false },
  network: [],
  transparentNetwork: false,
  rootUser: false,
  pause: false,
  snapshot: false,
  paths: false,
  reattach: true,
  reasons: {
    isolation: "commands run on this machine as the user who started Caisson",
    overlay: "there is no layer above the folder; changes go straight to it",
    ro: "commands have the user's own rights to the folder",
    mounts: "commands see every folder at its real path, and nothing can be mounted for them alone",
    cpus: noLimit,
    memoryBytes: noLimit,
    pids: noLimit,
    diskBytes: noLimit,
    network: "Commands use the machine's own network; the oci and docker runtimes give each sandbox a separate one.",
    rootUser: "commands run with the user's own id",
    pause: "processes are not in a separate group that could be frozen",
    snapshot: "files are the machine's own",
    paths: "there is no mount namespace in which a path could be hidden or made read-only",
    image: "there is no root file system but the machine's own",
  },
};

export const hostWarnings = [
  "Nothing is isolated: commands run on this machine as you, with your files, your network and your rights.",
  "The host runtime does not enforce the network policy none.",
  "The host runtime does not enforce the default limits for CPU, memory and processes, or the size of /tmp.",
];

/** Throws `unsupported` for explicit requests that cannot be enforced without a wall. */
export function refuseUnenforceable(config: SandboxConfig): void {
  const refuse = (what: string, reason: string | undefined, hint = strongerHint) => {
    throw new CaissonError("unsupported", `the host runtime cannot ${what}: ${reason}`, { hint });
  };
  const { reasons } = hostCapabilities;
  if (config.template.kind !== "host") refuse(`start from a template of kind ${config.template.kind}`, reasons.image);
  if (config.workspace.kind === "folder" && config.workspace.access !== "rw") {
    const { access } = config.workspace;
    refuse(
      `share the workspace as ${access}`,
      reasons[access],
      "Use :rw to let commands work on the folder itself, or use the oci runtime.",
    );
  }
  if (config.mounts.length > 0) refuse("mount folders", reasons.mounts);
  for (const name of ["cpus", "memoryBytes", "pids", "diskBytes"] as const) {
    if (config.limits[name] !== undefined) refuse(`limit ${name}`, reasons[name]);
  }
  refuseNetwork(config, hostCapabilities);
  if (config.allowRoot) refuse("give root", reasons.rootUser);
  if (config.readOnlyPaths.length > 0 || config.deniedPaths.length > 0) refuse("protect paths", reasons.paths);
  refuseOtherFields(config, { runtime: "host", known: ["limits", "env"] });
}

export function hostLimits(config: SandboxConfig): Limits {
  return {
    cpus: null,
    memoryBytes: null,
    pids: null,
    diskBytes: null,
    wallClockMs: config.limits.wallClockMs ?? defaultLimits.wallClockMs,
    outputBytes: config.limits.outputBytes ?? null,
  };
}
