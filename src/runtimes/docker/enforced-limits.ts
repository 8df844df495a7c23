import { defaultLimits } from "../../contract/default-limits.ts";
import type { CaissonError } from "../../contract/error.ts";
import type { Limits, SandboxSpec } from "../../contract/sandbox.ts";
import { limitRefused, sharedFolderRefused } from "../../sandbox/limit-refused.ts";
import { refuseBeyondMachine } from "../../sandbox/machine-size.ts";
import { sharedFolders } from "../../sandbox/shared-folders.ts";
import type { EngineFacts } from "./engine-facts.ts";

/** Engines refuse less than this. */
const MEMORY_BYTES_MIN = 6 * 1024 * 1024;
const CPUS_MIN = 0.01;
/** With root inside, the guest's own processes count among the work's: with fewer there would be no room for work. */
const ROOT_PIDS_MIN = 32;

/**
 * The limits in force. One that was asked for and cannot be enforced throws `unsupported`; a default that cannot be
 * becomes a warning.
 */
export function enforcedLimits(options: { spec: SandboxSpec; facts: EngineFacts; reasons: Readonly<Record<string, string>> }): {
  limits: Limits;
  warnings: string[];
} {
  const { spec, facts, reasons } = options;
  const asked = spec.limits;
  refuseBeyondMachine(asked);
  const warnings: string[] = [];
  const written = sharedFolders(spec).find(({ access }) => access === "rw");
  if (asked.diskBytes !== undefined && written !== undefined) throw sharedFolderRefused(written.path);

  function limit(name: keyof EngineFacts["limits"], byDefault: number | null): number | null {
    if (facts.limits[name]) return asked[name] ?? byDefault;
    const why = reasons[name] ?? "The engine cannot enforce it.";
    if (asked[name] !== undefined) throw limitRefused({ limit: name, reason: "the engine has no means to", hint: why });
    if (byDefault !== null) warnings.push(`The default limit of ${byDefault} for ${name} is not enforced. ${why}`);
    return null;
  }

  const limits: Limits = {
    cpus: limit("cpus", defaultLimits.cpus),
    memoryBytes: limit("memoryBytes", defaultLimits.memoryBytes),
    pids: limit("pids", defaultLimits.pids),
    diskBytes: limit("diskBytes", null),
    wallClockMs: asked.wallClockMs ?? defaultLimits.wallClockMs,
    outputBytes: asked.outputBytes ?? null,
  };
  if (limits.cpus !== null && limits.cpus < CPUS_MIN) throw tooSmall("cpus", CPUS_MIN);
  if (spec.allowRoot && limits.pids !== null && limits.pids < ROOT_PIDS_MIN) throw tooSmall("pids", ROOT_PIDS_MIN);
  if (limits.memoryBytes !== null && limits.memoryBytes < MEMORY_BYTES_MIN) throw tooSmall("memoryBytes", MEMORY_BYTES_MIN);
  return { limits, warnings };
}

function tooSmall(name: keyof EngineFacts["limits"], least: number): CaissonError {
  return limitRefused({
    limit: name,
    reason: `the engine enforces none below ${least}`,
    hint: `Ask for at least ${least}, or use the oci runtime.`,
  });
}
