import type { SandboxConfig } from "../../../contract/sandbox/sandbox.ts";
import { writesToHost } from "../../../sandbox/shared-folders.ts";
import { seccompProfile } from "../../hardening/seccomp.ts";
import { compileSeccomp } from "../../hardening/seccomp-filter.ts";
import type { PlanRecord } from "./launcher.ts";

const compiled = new Map<string, string>();

/**
 * Returns the record with the system-call filter that the guest installs. `arch` is Node's name for the processor.
 * Compiled once for each kind of sandbox.
 */
export function filterRecord(config: Pick<SandboxConfig, "workspace" | "mounts">, arch: string): PlanRecord {
  const writes = writesToHost(config);
  const key = `${arch} ${writes}`;
  const known = compiled.get(key) ?? compileSeccomp(seccompProfile({ arch, writesToHost: writes })).toString("hex");
  compiled.set(key, known);
  return ["filter", known];
}
