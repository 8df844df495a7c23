import { CaissonError } from "../../contract/error.ts";
import type { Capabilities } from "../../contract/sandbox.ts";
import { canFreeze } from "./cgroups/cgroup.ts";
import type { OciContext } from "./oci-context.ts";

/** From what is installed and mounted; starts nothing. Throws `unavailable`. */
export function ociCapabilities(oci: OciContext): Capabilities {
  const { rootless } = oci.identity();
  const [binary] = oci.binaries();
  if (binary === undefined)
    throw new CaissonError("unavailable", "no OCI runtime is installed", { hint: "Install one: `apt install crun` (or runc)." });
  const ability = oci.ability();
  const { parents, reason } = oci.cgroups();
  const pause = canFreeze(parents);
  // gVisor has a network of its own making, in which the launcher's routes mean nothing.
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
      ...(carriesAll ? {} : { transparentNetwork: "runsc does not use the routes of the sandbox's namespace; use crun or runc" }),
      ...(pause ? {} : { pause: reason ?? "no control group can freeze processes" }),
      ...(rootless
        ? {
            rootUser: "root inside cannot change what the host's root owns, so packages cannot be installed into /usr of the host template",
          }
        : {}),
    },
  };
}
