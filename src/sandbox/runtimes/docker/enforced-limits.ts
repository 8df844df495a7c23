import { CaissonError } from "../../../contract/error.ts";
import { defaultLimits, type Limits, type SandboxSpec } from "../../../contract/sandbox.ts";
import type { EngineFacts } from "./engine-facts.ts";

/** Engines refuse less than this. */
const MEMORY_BYTES_MIN = 6 * 1024 * 1024;
const CPUS_MIN = 0.01;

/** The limits in force. One that was asked for and cannot be enforced throws `unsupported`; a default that cannot be becomes a warning. */
export function enforcedLimits(options: { spec: SandboxSpec; facts: EngineFacts; reasons: Readonly<Record<string, string>> }): {
  limits: Limits;
  warnings: string[];
} {
  const { spec, facts, reasons } = options;
  const asked = spec.limits;
  const warnings: string[] = [];

  function limit(name: keyof EngineFacts["limits"], byDefault: number | null): number | null {
    if (facts.limits[name]) return asked[name] ?? byDefault;
    const why = reasons[name] ?? "The engine cannot enforce it.";
    if (asked[name] !== undefined) throw new CaissonError("unsupported", `the limit ${name} cannot be enforced here`, { hint: why });
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
  if (limits.memoryBytes !== null && limits.memoryBytes < MEMORY_BYTES_MIN) throw tooSmall("memoryBytes", MEMORY_BYTES_MIN);
  return { limits, warnings };
}

function tooSmall(name: string, least: number): CaissonError {
  return new CaissonError("unsupported", `the engine enforces no ${name} below ${least}`, {
    hint: `Ask for at least ${least}, or use the oci runtime.`,
  });
}
