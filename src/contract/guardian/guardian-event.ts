import { z } from "zod";
import { concerns, defineEvent } from "../event/define-event.ts";
import { eventFamily } from "../event/event-family.ts";
import { Usage } from "../model/usage.ts";
import { GuardianAction } from "./guardian-config.ts";

/** What the guardian detects. */
export const GuardianDetector = z.enum(["no_progress", "repetition", "drift", "cost", "errors", "duplicate"]);
export type GuardianDetector = z.infer<typeof GuardianDetector>;

export const GuardianDecisionId = z.string().regex(/^dec_[a-z2-7]{12}$/, "a decision id looks like dec_k3v7q2m5x4ab");
export type GuardianDecisionId = z.infer<typeof GuardianDecisionId>;

/** The writer truncates longer texts. */
export const GUARDIAN_TEXT_CHARACTERS_MAX = 500;
export const EVIDENCE_EVENTS_MAX = 20;
const text = z.string().max(GUARDIAN_TEXT_CHARACTERS_MAX);
/** Sequences of events of the same run. */
const evidence = z.array(z.int().positive()).max(EVIDENCE_EVENTS_MAX);
const Coherence = z.number().min(0).max(1);

/** A finding with its evidence. */
export const GuardianFinding = z.object({
  detector: GuardianDetector,
  /** How much it reduces the run's coherence. */
  severity: z.number().min(0).max(1),
  text,
  events: evidence,
});
export type GuardianFinding = z.infer<typeof GuardianFinding>;

/**
 * The guardian decided to act on the run. The action itself follows in the same append, so either both are recorded or
 * neither.
 */
export const GuardianDecided = defineEvent("guardian.decided", 1, concerns("facts", "terminal", "console", "guardian"), {
  decision: GuardianDecisionId,
  action: GuardianAction,
  /** The run's coherence at that moment; 1 if nothing is wrong. */
  coherence: Coherence,
  findings: z.array(GuardianFinding).min(1).max(GuardianDetector.options.length),
  text,
});
/** The effect of a decision: whether the run made progress within some steps. */
export const GuardianSettled = defineEvent("guardian.settled", 1, concerns("facts", "terminal", "console", "guardian"), {
  decision: GuardianDecisionId,
  effect: z.enum(["progress", "none"]),
  text,
  events: evidence,
});
/** A model judged whether the run still works on its task. Coherence is null if its answer was unusable. */
export const GuardianJudged = defineEvent("guardian.judged", 1, concerns("facts", "terminal", "console", "guardian"), {
  model: z.string().max(200),
  coherence: Coherence.nullable(),
  text,
  usage: Usage,
  costUsd: z.number().nonnegative().nullable(),
});

const all = [GuardianDecided, GuardianSettled, GuardianJudged] as const;
export const GuardianEvent = z.discriminatedUnion("type", all);
export const guardianEvents = eventFamily(all);
export type GuardianEvent = z.infer<typeof GuardianEvent>;
