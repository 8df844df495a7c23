import { CaissonError } from "../../contract/error/error.ts";
import type { Capabilities } from "../../contract/sandbox/sandbox.ts";
import { canFreeze } from "./cgroups/cgroup.ts";
import type { OciContext } from "./oci-context.ts";

/** Derives the capabilities from what is installed and mounted, without starting anything. Throws `unavailable`. */
export function ociCapabilities(oci: OciContext): Capabilities {
  const { rootless } = oci.identity();
  const [binary] = oci.binaries();
  if (binary === undefined)
    throw new CaissonError("unavailable", "no OCI runtime is installed", { hint: "Install one: `apt install crun` (or runc)." });
  const ability = oci.ability();
  const { parents, reason } = oci.cgroups();
  const pause = canFreeze(parents);
  // gVisor has its own network stack, which ignores the launcher's routes.
  const carriesAll = binary.name !== "runsc";
  const { cpus, memoryBytes, pids, diskBytes } = ability;
  return {
    isolation: binary.name === "runsc" ? 2 : 1,
    sharesHostFilesystem: true,
    templates: ["host", "image", "snapshot"],
    workspaceAccess: ["overlay", "rw", "ro"],
    mounts: ["overlay", "rw", "ro"],
    workspaceLayer: true,
    limits: { cpus, memoryBytes, pids, diskBytes },
    network: ["none", "allow", "open"],
    transparentNetwork: carriesAll,
    rootUser: true,
    pause,
    snapshot: true,
    paths: true,
    reattach: true,
    reasons: {
      ...ability.reasons,
      ...(carriesAll ? {} : { transparentNetwork: "runsc ignores the routes of the sandbox's namespace; use crun or runc" }),
      ...(pause ? {} : { pause: reason ?? "no control group can freeze processes" }),
      ...(rootless
        ? {
            rootUser: "root inside cannot change files of the host's root, so packages cannot be installed into /usr of the host template",
          }
        : {}),
    },
  };
}
