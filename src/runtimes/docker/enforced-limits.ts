import { defaultLimits } from "../../contract/defaults/default-limits.ts";
import type { CaissonError } from "../../contract/error/error.ts";
import type { Limits, SandboxConfig } from "../../contract/sandbox/sandbox.ts";
import { limitRefused, sharedFolderRefused } from "../../sandbox/limit-refused.ts";
import { refuseBeyondMachine } from "../../sandbox/machine-size.ts";
import { sharedFolders } from "../../sandbox/shared-folders.ts";
import type { EngineFacts } from "./engine-facts.ts";

/** The least that engines accept. */
const MEMORY_BYTES_MIN = 6 * 1024 * 1024;
const CPUS_MIN = 0.01;
/** With root allowed, the guest's processes count toward the limit. A lower one would leave no room for programs. */
const ROOT_PIDS_MIN = 32;

/**
 * Returns the limits to enforce. Throws `unsupported` for a requested limit that cannot be enforced; a default that
 * cannot be enforced becomes a warning.
 */
export function enforcedLimits(options: { config: SandboxConfig; facts: EngineFacts; reasons: Readonly<Record<string, string>> }): {
  limits: Limits;
  warnings: string[];
} {
  const { config, facts, reasons } = options;
  const requestedLimits = config.limits;
  refuseBeyondMachine(requestedLimits);
  const warnings: string[] = [];
  const written = sharedFolders(config).find(({ access }) => access === "rw");
  if (requestedLimits.diskBytes !== undefined && written !== undefined) throw sharedFolderRefused(written.path);

  function limit(name: keyof EngineFacts["limits"], byDefault: number | null): number | null {
    if (facts.limits[name]) return requestedLimits[name] ?? byDefault;
    const why = reasons[name] ?? "The engine cannot enforce it.";
    if (requestedLimits[name] !== undefined) throw limitRefused({ limit: name, reason: "the engine does not support it", hint: why });
    if (byDefault !== null) warnings.push(`The default limit of ${byDefault} for ${name} is not enforced. ${why}`);
    return null;
  }

  const limits: Limits = {
    cpus: limit("cpus", defaultLimits.cpus),
    memoryBytes: limit("memoryBytes", defaultLimits.memoryBytes),
    pids: limit("pids", defaultLimits.pids),
    diskBytes: limit("diskBytes", null),
    wallClockMs: requestedLimits.wallClockMs ?? defaultLimits.wallClockMs,
    outputBytes: requestedLimits.outputBytes ?? null,
  };
  if (limits.cpus !== null && limits.cpus < CPUS_MIN) throw tooSmall("cpus", CPUS_MIN);
  if (config.allowRoot && limits.pids !== null && limits.pids < ROOT_PIDS_MIN) throw tooSmall("pids", ROOT_PIDS_MIN);
  if (limits.memoryBytes !== null && limits.memoryBytes < MEMORY_BYTES_MIN) throw tooSmall("memoryBytes", MEMORY_BYTES_MIN);
  return { limits, warnings };
}

function tooSmall(name: keyof EngineFacts["limits"], least: number): CaissonError {
  return limitRefused({
    limit: name,
    reason: `the engine's minimum is ${least}`,
    hint: `Request at least ${least}, or use the oci runtime.`,
  });
}
