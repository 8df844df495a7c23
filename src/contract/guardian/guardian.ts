import { z } from "zod";
import { RunId } from "../ids.ts";
import { Owner } from "../token/owner.ts";
import { GuardianAction, GuardianConfig } from "./guardian-config.ts";
import { GuardianDecisionId, type GuardianEvent, GuardianFinding } from "./guardian-event.ts";

/** Maximum number of decisions in a run's head; the log has all of them. */
const DECISIONS_KEPT = 10;

const share = z.number().min(0).max(1);

/** A decision as stored in a run's head. */
export const KeptDecision = z.object({
  decision: GuardianDecisionId,
  at: z.string(),
  action: GuardianAction,
  coherence: share,
  text: z.string(),
  /** Null until the effect is known. */
  effect: z.enum(["progress", "none"]).nullable(),
});
export type KeptDecision = z.infer<typeof KeptDecision>;

/** What the guardian did to a run, folded from its events. */
export const GuardianFacts = z.object({
  /** The latest decisions, in order. */
  decisions: z.array(KeptDecision),
  judge: z.object({ calls: z.int().nonnegative(), costUsd: z.number().nonnegative() }),
});
export type GuardianFacts = z.infer<typeof GuardianFacts>;

export function emptyGuardianFacts(): GuardianFacts {
  return { decisions: [], judge: { calls: 0, costUsd: 0 } };
}

/** Applies one event to the facts, in place. */
export function foldGuardian(facts: GuardianFacts, event: GuardianEvent): void {
  switch (event.type) {
    case "guardian.decided": {
      const { decision, action, coherence, text } = event.data;
      facts.decisions = [...facts.decisions, { decision, at: event.at, action, coherence, text, effect: null }].slice(-DECISIONS_KEPT);
      return;
    }
    case "guardian.settled": {
      const settled = facts.decisions.find(({ decision }) => decision === event.data.decision);
      if (settled) settled.effect = event.data.effect;
      return;
    }
    case "guardian.judged":
      facts.judge = { calls: facts.judge.calls + 1, costUsd: facts.judge.costUsd + (event.data.costUsd ?? 0) };
      return;
    default:
      event satisfies never;
  }
}

/** A decision with its run. `ended`: the run ended before the effect was known. */
export const GuardianLogEntry = KeptDecision.extend({
  run: RunId,
  owner: Owner,
  agent: z.string(),
  title: z.string(),
  effect: z.enum(["progress", "none", "ended"]).nullable(),
});
export type GuardianLogEntry = z.infer<typeof GuardianLogEntry>;

export const ListDecisions = z.strictObject({
  /** Only decisions on this run. */
  run: z.string().min(1).max(200).optional(),
  owner: Owner.optional(),
  limit: z.int().min(1).max(1000).default(100),
});
export type ListDecisions = z.input<typeof ListDecisions>;

/** The guardian's current view of a run. */
export const GuardianStanding = z.object({
  run: RunId,
  owner: Owner,
  agent: z.string(),
  title: z.string(),
  /** Whether it is monitored, and if not, why. */
  watched: z.boolean(),
  why: z.string().nullable(),
  /** The strongest action allowed for it. */
  atMost: GuardianAction,
  steps: z.int().nonnegative(),
  /** Steps since the last progress, and what the progress was. */
  idleSteps: z.int().nonnegative(),
  progress: z.object({ event: z.int().nonnegative(), text: z.string() }),
  coherence: share,
  findings: z.array(GuardianFinding),
  judge: GuardianFacts.shape.judge,
});
export type GuardianStanding = z.infer<typeof GuardianStanding>;

/** `running`: whether a station's guardian is active; otherwise the rest is what it would see. */
export const GuardianStatus = z.object({
  running: z.boolean(),
  settings: GuardianConfig,
  runs: z.array(GuardianStanding),
});
export type GuardianStatus = z.infer<typeof GuardianStatus>;

/** Everything that the guardian saw and did in one run. */
export const GuardianExplanation = z.object({
  standing: GuardianStanding,
  decisions: z.array(
    z.object({
      decision: GuardianDecisionId,
      /** The sequence of its event in the run log. */
      event: z.int().positive(),
      at: z.string(),
      action: GuardianAction,
      coherence: share,
      text: z.string(),
      findings: z.array(GuardianFinding),
      effect: z.enum(["progress", "none", "ended"]).nullable(),
      effectText: z.string().nullable(),
    }),
  ),
  judgements: z.array(
    z.object({ event: z.int().positive(), at: z.string(), model: z.string(), coherence: share.nullable(), text: z.string() }),
  ),
});
export type GuardianExplanation = z.infer<typeof GuardianExplanation>;
