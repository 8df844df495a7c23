import type { AttackVerdict } from "../../contract/attack-report.ts";
import type { Capabilities } from "../../contract/sandbox.ts";
import type { AttackContext } from "./attack-context.ts";

export type Verdict = AttackVerdict;
export type VerdictKind = Verdict["verdict"];
export type ClaimGroup = Verdict["group"];

/** An observation that could not be made. */
export interface NotTried {
  notTried: "declared" | "unverifiable";
  reason: string;
}

export interface Claim<Seen = unknown> {
  id: string;
  title: string;
  group: ClaimGroup;
  tried: string;
  /** It waits for a bound of the host's to pass, in a sandbox of its own: it is tried beside the others. */
  waits?: true;
  /** Tries it, in a way that is harmless even where the wall does not hold. */
  observe(context: AttackContext): Promise<Seen | NotTried>;
  /** What of the observation breaks the claim, each as a phrase; nothing: it holds. */
  judge(seen: Seen, facts: { capabilities: Capabilities }): string[];
  /** The observation for people; by default as JSON. */
  describe?(seen: Seen): string;
}

const SEEN_CHARACTERS_MAX = 2_000;

/** Keeps the type of an observation together between `observe` and `judge`. */
export function defineClaim<Seen>(claim: Claim<Seen>): Claim {
  return claim as Claim;
}

export function unverifiable(reason: string): NotTried {
  return { notTried: "unverifiable", reason };
}

export function declared(reason: string): NotTried {
  return { notTried: "declared", reason };
}

/** Tries one claim. Never throws: an attack that fails in an unforeseen way proves nothing, and counts as failed. */
export function tryClaim(claim: Claim, context: AttackContext): Promise<Verdict> {
  return verdictOf(claim, {
    observe: () => context.within(`claim ${claim.id}`, claim.observe(context)),
    judge: (seen) => claim.judge(seen, context),
  });
}

interface Trial {
  observe(): Promise<unknown>;
  judge(seen: unknown): string[];
}

/** The verdict on one claim, of whatever suite. Never throws. */
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
    return verdict("failed", `the attempt broke off: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function isNotTried(seen: unknown): seen is NotTried {
  return typeof seen === "object" && seen !== null && "notTried" in seen;
}
