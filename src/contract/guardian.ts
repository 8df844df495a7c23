import { z } from "zod";
import { GuardianAction, GuardianConfig } from "./guardian-config.ts";
import { GuardianDecisionId, type GuardianEvent, GuardianFinding } from "./guardian-event.ts";
import { Owner } from "./owner.ts";
import { RunId } from "./run.ts";

/** As many decisions of a run as its head keeps; the log has them all. */
const DECISIONS_KEPT = 10;

const share = z.number().min(0).max(1);

/** A decision, as a run's head keeps it. */
export const KeptDecision = z.object({
  decision: GuardianDecisionId,
  at: z.string(),
  action: GuardianAction,
  coherence: share,
  text: z.string(),
  /** Null until it shows. */
  effect: z.enum(["progress", "none"]).nullable(),
});
export type KeptDecision = z.infer<typeof KeptDecision>;

/** What the guardian did about a run: a fold of its events. */
export const GuardianFacts = z.object({
  /** The last ones, in their order. */
  decisions: z.array(KeptDecision),
  judge: z.object({ calls: z.int().nonnegative(), costUsd: z.number().nonnegative() }),
});
export type GuardianFacts = z.infer<typeof GuardianFacts>;

export function emptyGuardianFacts(): GuardianFacts {
  return { decisions: [], judge: { calls: 0, costUsd: 0 } };
}

/** Adds one event to the facts, in place. */
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

/** A decision, with the run that it is about. `ended`: the run was over before an effect could show. */
export const GuardianLogEntry = KeptDecision.extend({
  run: RunId,
  owner: Owner,
  agent: z.string(),
  title: z.string(),
  effect: z.enum(["progress", "none", "ended"]).nullable(),
});
export type GuardianLogEntry = z.infer<typeof GuardianLogEntry>;

export const ListDecisions = z.strictObject({
  /** Of this run only. */
  run: z.string().min(1).max(200).optional(),
  owner: Owner.optional(),
  limit: z.int().min(1).max(1000).default(100),
});
export type ListDecisions = z.input<typeof ListDecisions>;

/** A run as the guardian sees it now. */
export const GuardianStanding = z.object({
  run: RunId,
  owner: Owner,
  agent: z.string(),
  title: z.string(),
  /** Whether it is watched, and why not. */
  watched: z.boolean(),
  why: z.string().nullable(),
  /** The strongest thing that may be done about it. */
  atMost: GuardianAction,
  steps: z.int().nonnegative(),
  /** Steps since the last progress, and what that was. */
  idleSteps: z.int().nonnegative(),
  progress: z.object({ event: z.int().nonnegative(), text: z.string() }),
  coherence: share,
  findings: z.array(GuardianFinding),
  judge: GuardianFacts.shape.judge,
});
export type GuardianStanding = z.infer<typeof GuardianStanding>;

/** `running`: whether a station's guardian is at work; otherwise the rest is what one would see. */
export const GuardianStatus = z.object({
  running: z.boolean(),
  settings: GuardianConfig,
  runs: z.array(GuardianStanding),
});
export type GuardianStatus = z.infer<typeof GuardianStatus>;

/** Everything the guardian saw and did in one run. */
export const GuardianExplanation = z.object({
  standing: GuardianStanding,
  decisions: z.array(
    z.object({
      decision: GuardianDecisionId,
      /** The number of its event in the run's log. */
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
