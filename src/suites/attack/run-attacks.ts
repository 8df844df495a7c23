import { arch, release } from "node:os";
import { CaissonError } from "../../contract/error/error.ts";
import type { AttackReport } from "../../contract/machine/attack-report.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import { type AttackContextOptions, openAttackContext } from "./attack-context.ts";
import { type Claim, tryClaim, type Verdict } from "./claim.ts";
import { claims } from "./suite.ts";

export { verifyReport } from "./report.ts";

export interface AttackOptions extends AttackContextOptions {
  /** Caisson's version, for the report. */
  version: string;
  onVerdict?: (verdict: Verdict) => void;
  /**
   * Claims from layers above the sandbox, tried after the suite's own: how the host handles what an agent or a clone
   * wrote.
   */
  more?: readonly Claim[];
  /** Ids of the claims to try. Absent: all. */
  only?: readonly string[];
}

/**
 * Attacks sandboxes of one runtime and reports what held. Does not harm the machine, even if a wall does not hold.
 * Throws `invalid` for an unknown claim, `unavailable` if the runtime is unusable; a claim that throws gets a verdict
 * instead.
 */
export async function runAttacks(runtime: Runtime, options: AttackOptions): Promise<AttackReport> {
  const chosen = chooseClaims([...claims, ...(options.more ?? [])], options.only);
  const startedAt = new Date().toISOString();
  const { findings } = await runtime.probe();
  await using context = await openAttackContext(runtime, options);
  const beside = new Map(chosen.filter((claim) => claim.waits).map((claim) => [claim.id, tryClaim(claim, context)]));
  const verdicts: Verdict[] = [];
  for (const claim of chosen) {
    // Some faults are only visible in what remains on the machine, so no other claim may run at the same time.
    if (claim.group === "faults") await Promise.all(beside.values());
    const verdict = await (beside.get(claim.id) ?? tryClaim(claim, context));
    verdicts.push(verdict);
    options.onVerdict?.(verdict);
  }
  return {
    kind: "caisson.attack-report",
    version: 1,
    runtime: runtime.name,
    isolation: context.capabilities.isolation,
    versions: { caisson: options.version, node: process.version, kernel: release(), architecture: arch() },
    findings: findings.map(({ level, text }) => `${level}: ${text}`),
    startedAt,
    endedAt: new Date().toISOString(),
    holds: verdicts.every((each) => each.verdict !== "failed"),
    verdicts,
  };
}

function chooseClaims(all: readonly Claim[], only: readonly string[] | undefined): readonly Claim[] {
  if (only === undefined) return all;
  const unknown = only.filter((id) => !all.some((claim) => claim.id === id));
  if (unknown.length > 0) {
    throw new CaissonError("invalid", `there is no claim ${unknown.join(", ")}`, {
      hint: `The claims are ${all.map((claim) => claim.id).join(", ")}.`,
    });
  }
  return all.filter((claim) => only.includes(claim.id));
}
