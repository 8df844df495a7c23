import { CaissonError } from "../../../contract/error.ts";
import { defaultLimits, type Limits, type LimitsRequest } from "../../../contract/sandbox.ts";
import type { CgroupParents } from "./cgroup-parents.ts";

export interface LimitAbility {
  cpus: boolean;
  memoryBytes: boolean;
  pids: boolean;
  diskBytes: boolean;
  reasons: Record<string, string>;
}

/** What can be limited here. Without a group for processes the guest limits those of the sandbox's user by itself. */
export function limitAbility(options: {
  cgroups: Pick<CgroupParents, "parents" | "reason">;
  rootless: boolean;
  mkfs: string | null;
}): LimitAbility {
  const { parents, reason } = options.cgroups;
  const has = (controller: string) => parents.some(({ controllers }) => controllers.includes(controller));
  const reasons: Record<string, string> = {};
  if (!has("cpu")) reasons.cpus = reason ?? "no cpu controller";
  if (!has("memory")) reasons.memoryBytes = reason ?? "no memory controller";
  if (options.rootless) reasons.disk = "files of a sandbox with a disk limit are kept in memory, since only root can mount a disk image";
  const diskBytes = options.rootless || options.mkfs !== null;
  if (!diskBytes)
    reasons.diskBytes = "mkfs.ext4 is not installed, so no disk of limited size can be made; install it: `apt install e2fsprogs`";
  return { cpus: has("cpu"), memoryBytes: has("memory"), pids: true, diskBytes, reasons };
}

export interface EnforcedLimits {
  limits: Limits;
  warnings: string[];
}

/** Throws `unsupported` for a limit that was asked for and cannot be enforced; a default one is dropped, with a warning. */
export function enforcedLimits(asked: LimitsRequest, ability: LimitAbility): EnforcedLimits {
  const warnings: string[] = [];
  const decide = (name: "cpus" | "memoryBytes" | "pids", fallback: number) => {
    if (ability[name]) return asked[name] ?? fallback;
    const reason = ability.reasons[name] ?? "it cannot be enforced here";
    if (asked[name] !== undefined)
      throw new CaissonError("unsupported", `the limit ${name} cannot be enforced: ${reason}`, {
        hint: "Leave the limit out, or mend what is missing.",
        details: { limit: name },
      });
    warnings.push(`${name} is not limited: ${reason}.`);
    return null;
  };
  if (asked.diskBytes !== undefined && !ability.diskBytes) {
    throw new CaissonError("unsupported", `the limit diskBytes cannot be enforced: ${ability.reasons.diskBytes}`, {
      details: { limit: "diskBytes" },
    });
  }
  const limits: Limits = {
    cpus: decide("cpus", defaultLimits.cpus),
    memoryBytes: decide("memoryBytes", defaultLimits.memoryBytes),
    pids: decide("pids", defaultLimits.pids),
    diskBytes: asked.diskBytes ?? null,
    wallClockMs: asked.wallClockMs ?? defaultLimits.wallClockMs,
    outputBytes: asked.outputBytes ?? null,
  };
  return { limits, warnings };
}
