import type { AttackVerdict } from "../../contract/machine/attack-report.ts";
import type { Capabilities } from "../../contract/sandbox/sandbox.ts";
import type { AttackContext } from "./attack-context.ts";

export type Verdict = AttackVerdict;
export type VerdictKind = Verdict["verdict"];
export type ClaimGroup = Verdict["group"];

/** The result of an observation that was not possible. */
export interface NotTried {
  notTried: "declared" | "unverifiable";
  reason: string;
}

export interface Claim<Seen = unknown> {
  id: string;
  title: string;
  group: ClaimGroup;
  tried: string;
  /** Set for a claim that waits for a host time limit in its own sandbox, so it runs in parallel with other claims. */
  waits?: true;
  /** Attacks the sandbox in a way that does no harm even if the wall does not hold. */
  observe(context: AttackContext): Promise<Seen | NotTried>;
  /** Returns what in the observation breaks the claim, as phrases. Empty if the claim holds. */
  judge(seen: Seen, facts: { capabilities: Capabilities }): string[];
  /** Describes the observation for readers. Absent: as JSON. */
  describe?(seen: Seen): string;
}

const SEEN_CHARACTERS_MAX = 2_000;

/** Ties the types of `observe` and `judge` together. */
export function defineClaim<Seen>(claim: Claim<Seen>): Claim {
  return claim as Claim;
}

export function unverifiable(reason: string): NotTried {
  return { notTried: "unverifiable", reason };
}

export function notTriedAsDeclared(reason: string): NotTried {
  return { notTried: "declared", reason };
}

/** Tries one claim. Never throws: an attack that fails unexpectedly proves nothing, and counts as failed. */
export function tryClaim(claim: Claim, context: AttackContext): Promise<Verdict> {
  return verdictOf(claim, {
    // A waiting claim takes several of the product's timeouts, and runs in parallel with the other claims.
    observe: () =>
      context.within(`claim ${claim.id}`, claim.observe(context), claim.waits === true ? 4 * context.patienceMs : context.patienceMs),
    judge: (seen) => claim.judge(seen, context),
  });
}

interface Trial {
  observe(): Promise<unknown>;
  judge(seen: unknown): string[];
}

/** Returns the verdict on one claim of any suite. Never throws. */
export async function verdictOf(
  { id, title, group, tried, describe }: Pick<Claim, "id" | "title" | "group" | "tried" | "describe">,
  { observe, judge }: Trial,
): Promise<Verdict> {
  const from = performance.now();
  const verdict = (kind: VerdictKind, seen: string): Verdict => ({
    id,
    title,
    group,
    verdict: kind,
    tried,
    seen: seen.slice(0, SEEN_CHARACTERS_MAX),
    durationMs: Math.round(performance.now() - from),
  });
  try {
    const seen = await observe();
    if (isNotTried(seen)) return verdict(seen.notTried, seen.reason);
    const breaches = judge(seen);
    if (breaches.length > 0) return verdict("failed", breaches.join("; "));
    return verdict("observed", describe?.(seen) ?? JSON.stringify(seen));
  } catch (error) {
    return verdict("failed", `the attempt failed: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function isNotTried(seen: unknown): seen is NotTried {
  return typeof seen === "object" && seen !== null && "notTried" in seen;
}
