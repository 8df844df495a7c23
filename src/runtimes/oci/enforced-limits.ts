import { defaultLimits } from "../../contract/defaults/default-limits.ts";
import type { Limits, SandboxConfig } from "../../contract/sandbox/sandbox.ts";
import { limitRefused, sharedFolderRefused } from "../../sandbox/limit-refused.ts";
import { refuseBeyondMachine } from "../../sandbox/machine-size.ts";
import { sharedFolders } from "../../sandbox/shared-folders.ts";
import type { CgroupParents } from "./cgroups/cgroup-parents.ts";
import type { LayerState } from "./layers/disk.ts";

export interface LimitAbility {
  cpus: boolean;
  memoryBytes: boolean;
  pids: boolean;
  /** Whether processes of root inside are counted too: only a control group counts processes of every uid. */
  pidsOfRoot: boolean;
  diskBytes: boolean;
  /** Whether a disk can outlive its sandbox: only an image can, and only root can mount one. */
  diskOfLayer: boolean;
  reasons: Record<string, string>;
  /** Why control groups limit less than they could, in brief. */
  briefReason: string | null;
}

/** Determines what can be limited here. Without a pids group, the guest limits the processes of the sandbox's user. */
export function limitAbility(options: {
  cgroups: Pick<CgroupParents, "parents" | "reason" | "briefReason">;
  rootless: boolean;
  mkfs: string | null;
}): LimitAbility {
  const { parents, reason } = options.cgroups;
  const has = (controller: string) => parents.some(({ controllers }) => controllers.includes(controller));
  const reasons: Record<string, string> = {};
  if (!has("cpu")) reasons.cpus = reason ?? "no cpu controller";
  if (!has("memory")) reasons.memoryBytes = reason ?? "no memory controller";
  if (!has("pids")) reasons.pidsOfRoot = reason ?? "no pids controller";
  if (options.rootless) reasons.disk = "files of a sandbox with a disk limit are stored in memory, since only root can mount a disk image";
  const diskBytes = options.rootless || options.mkfs !== null;
  if (!diskBytes)
    reasons.diskBytes = "mkfs.ext4 is not installed, so no disk of limited size can be created; install it: `apt install e2fsprogs`";
  return {
    ...{ cpus: has("cpu"), memoryBytes: has("memory"), pids: true, pidsOfRoot: has("pids") },
    ...{ diskBytes, diskOfLayer: !options.rootless && diskBytes, reasons },
    briefReason: options.cgroups.briefReason,
  };
}

export interface EnforcedLimits {
  limits: Limits;
  warnings: string[];
}

type LimitedConfig = Pick<SandboxConfig, "limits" | "workspace" | "mounts" | "allowRoot">;

/**
 * Returns the limits to enforce. Throws `unsupported` for a requested limit that cannot be enforced; drops a default
 * one with a warning.
 */
export function enforcedLimits(config: LimitedConfig, ability: LimitAbility, layer: LayerState | null): EnforcedLimits {
  const requestedLimits = config.limits;
  refuseBeyondMachine(requestedLimits);
  const written = sharedFolders(config).find(({ access }) => access === "rw");
  if (requestedLimits.diskBytes !== undefined && written !== undefined) throw sharedFolderRefused(written.path);
  const warnings: string[] = [];
  const unlimited: string[] = [];
  const decide = (name: "cpus" | "memoryBytes" | "pids", obstacle: string | null) => {
    if (obstacle === null) return requestedLimits[name] ?? defaultLimits[name];
    if (requestedLimits[name] !== undefined)
      throw limitRefused({ limit: name, reason: obstacle, hint: "Leave the limit out, or provide what is missing." });
    unlimited.push(plainNames[name]);
    return null;
  };
  const missing = (name: "cpus" | "memoryBytes" | "pids") =>
    ability[name] ? null : (ability.reasons[name] ?? "it cannot be enforced here");
  const rootIsFree = config.allowRoot && !ability.pidsOfRoot;
  const obstacleOfPids = rootIsFree ? `only a control group limits root inside, and ${ability.reasons.pidsOfRoot}` : missing("pids");
  const limits: Limits = {
    cpus: decide("cpus", missing("cpus")),
    memoryBytes: decide("memoryBytes", missing("memoryBytes")),
    pids: decide("pids", obstacleOfPids),
    diskBytes: layer === null ? plainDisk(config, ability) : layerDisk(requestedLimits.diskBytes, { ability, layer, warnings }),
    wallClockMs: requestedLimits.wallClockMs ?? defaultLimits.wallClockMs,
    outputBytes: requestedLimits.outputBytes ?? null,
  };
  if (unlimited.length > 0)
    warnings.unshift(`${listNames(unlimited)} not limited: ${ability.briefReason ?? "it cannot be enforced here"}.`);
  return { limits, warnings };
}

const plainNames = { cpus: "CPU time", memoryBytes: "memory", pids: "the number of root's processes" } as const;

/** Returns the names as the subject of a sentence, with its verb. */
function listNames(names: readonly string[]): string {
  const before = names.slice(0, -1).join(", ");
  return before === "" ? `${names[0]} is` : `${before} and ${names.at(-1)} are`;
}

function plainDisk(config: LimitedConfig, ability: LimitAbility): number | null {
  const { diskBytes } = config.limits;
  if (diskBytes === undefined) return null;
  if (!ability.diskBytes) {
    const reason = ability.reasons.diskBytes ?? "it cannot be enforced here";
    throw limitRefused({ limit: "diskBytes", reason, hint: "Leave the limit out, or provide what is missing." });
  }
  return diskBytes;
}

/**
 * Limits a workspace that outlives its sandbox, by a disk that also outlives the sandbox. The disk keeps its original
 * size.
 */
function layerDisk(
  requestedBytes: number | undefined,
  { ability, layer, warnings }: { ability: LimitAbility; layer: LayerState; warnings: string[] },
): number | null {
  const refuse = (reason: string, hint: string) => limitRefused({ limit: "diskBytes", reason, hint });
  if (requestedBytes === undefined && layer.diskBytes === null) return null;
  if (!ability.diskOfLayer) {
    const reason =
      ability.reasons.diskBytes ?? "a session's files must outlive their sandbox, and only root can mount a disk image that does";
    throw refuse(`a run's workspace has no separate disk here: ${reason}`, "Leave the disk limit out, or run Caisson as root.");
  }
  if (layer.diskBytes === null) {
    if (!layer.inFolder) return requestedBytes ?? null;
    throw refuse("the session's files are already on the host's disk", "Start a new session, or leave the disk limit out.");
  }
  if (requestedBytes !== undefined && requestedBytes < layer.diskBytes)
    throw refuse(`the session's disk was created with ${layer.diskBytes} bytes`, "Start a new session to get a smaller disk.");
  if (requestedBytes !== undefined && requestedBytes > layer.diskBytes)
    warnings.push(`The session's disk keeps its original size of ${layer.diskBytes} bytes.`);
  return layer.diskBytes;
}
