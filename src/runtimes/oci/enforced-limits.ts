import { defaultLimits } from "../../contract/default-limits.ts";
import type { Limits, SandboxSpec } from "../../contract/sandbox.ts";
import { limitRefused, sharedFolderRefused } from "../../sandbox/limit-refused.ts";
import { refuseBeyondMachine } from "../../sandbox/machine-size.ts";
import { sharedFolders } from "../../sandbox/shared-folders.ts";
import type { CgroupParents } from "./cgroups/cgroup-parents.ts";
import type { LayerState } from "./layers/disk.ts";

export interface LimitAbility {
  cpus: boolean;
  memoryBytes: boolean;
  pids: boolean;
  /** Whether root inside is counted, too: only a control group counts processes whoever they run as. */
  pidsOfRoot: boolean;
  diskBytes: boolean;
  /** Whether a disk can outlive its sandbox: only an image does, and only root can mount one. */
  diskOfLayer: boolean;
  reasons: Record<string, string>;
  /** Why control groups limit less than they could, in short. */
  briefReason: string | null;
}

/** What can be limited here. Without a group for processes the guest limits those of the sandbox's user by itself. */
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
  if (options.rootless) reasons.disk = "files of a sandbox with a disk limit are kept in memory, since only root can mount a disk image";
  const diskBytes = options.rootless || options.mkfs !== null;
  if (!diskBytes)
    reasons.diskBytes = "mkfs.ext4 is not installed, so no disk of limited size can be made; install it: `apt install e2fsprogs`";
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

type Asked = Pick<SandboxSpec, "limits" | "workspace" | "mounts" | "allowRoot">;

/**
 * Throws `unsupported` for a limit that was asked for and cannot be enforced; a default one is dropped, with a warning.
 */
export function enforcedLimits(spec: Asked, ability: LimitAbility, layer: LayerState | null): EnforcedLimits {
  const asked = spec.limits;
  refuseBeyondMachine(asked);
  const written = sharedFolders(spec).find(({ access }) => access === "rw");
  if (asked.diskBytes !== undefined && written !== undefined) throw sharedFolderRefused(written.path);
  const warnings: string[] = [];
  const unlimited: string[] = [];
  const decide = (name: "cpus" | "memoryBytes" | "pids", obstacle: string | null) => {
    if (obstacle === null) return asked[name] ?? defaultLimits[name];
    if (asked[name] !== undefined)
      throw limitRefused({ limit: name, reason: obstacle, hint: "Leave the limit out, or provide what is missing." });
    unlimited.push(plainNames[name]);
    return null;
  };
  const missing = (name: "cpus" | "memoryBytes" | "pids") =>
    ability[name] ? null : (ability.reasons[name] ?? "it cannot be enforced here");
  const rootIsFree = spec.allowRoot && !ability.pidsOfRoot;
  const obstacleOfPids = rootIsFree ? `root inside is bound by a control group only, and ${ability.reasons.pidsOfRoot}` : missing("pids");
  const limits: Limits = {
    cpus: decide("cpus", missing("cpus")),
    memoryBytes: decide("memoryBytes", missing("memoryBytes")),
    pids: decide("pids", obstacleOfPids),
    diskBytes: layer === null ? plainDisk(spec, ability) : layerDisk(asked.diskBytes, { ability, layer, warnings }),
    wallClockMs: asked.wallClockMs ?? defaultLimits.wallClockMs,
    outputBytes: asked.outputBytes ?? null,
  };
  if (unlimited.length > 0) warnings.unshift(`${listed(unlimited)} not limited: ${ability.briefReason ?? "it cannot be enforced here"}.`);
  return { limits, warnings };
}

const plainNames = { cpus: "CPU time", memoryBytes: "memory", pids: "the number of root's processes" } as const;

/** As the subject of a sentence, with its verb. */
function listed(names: readonly string[]): string {
  const before = names.slice(0, -1).join(", ");
  return before === "" ? `${names[0]} is` : `${before} and ${names.at(-1)} are`;
}

function plainDisk(spec: Asked, ability: LimitAbility): number | null {
  const { diskBytes } = spec.limits;
  if (diskBytes === undefined) return null;
  if (!ability.diskBytes) {
    const reason = ability.reasons.diskBytes ?? "it cannot be enforced here";
    throw limitRefused({ limit: "diskBytes", reason, hint: "Leave the limit out, or provide what is missing." });
  }
  return diskBytes;
}

/** A workspace that outlives its sandbox is limited by a disk that does, too; it keeps the size it was made with. */
function layerDisk(
  asked: number | undefined,
  { ability, layer, warnings }: { ability: LimitAbility; layer: LayerState; warnings: string[] },
): number | null {
  const refuse = (reason: string, hint: string) => limitRefused({ limit: "diskBytes", reason, hint });
  if (asked === undefined && layer.diskBytes === null) return null;
  if (!ability.diskOfLayer) {
    const reason =
      ability.reasons.diskBytes ?? "a session's files must outlive their sandbox, and only root can mount a disk image that does";
    throw refuse(`the workspace of a run has no disk of its own here: ${reason}`, "Leave the disk limit out, or run Caisson as root.");
  }
  if (layer.diskBytes === null) {
    if (!layer.inFolder) return asked ?? null;
    throw refuse("the session's files lie on the host's disk already", "Start a new session, or leave the disk limit out.");
  }
  if (asked !== undefined && asked < layer.diskBytes)
    throw refuse(`the session's disk was made with ${layer.diskBytes} bytes`, "Start a new session for a smaller one.");
  if (asked !== undefined && asked > layer.diskBytes)
    warnings.push(`The session's disk keeps the ${layer.diskBytes} bytes it was made with.`);
  return layer.diskBytes;
}
