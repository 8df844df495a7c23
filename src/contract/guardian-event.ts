import { z } from "zod";
import { defineEvent } from "./define-event.ts";
import { eventFamily } from "./event-family.ts";
import { GuardianAction } from "./guardian-config.ts";
import { Usage } from "./usage.ts";

/** What it looks for. */
export const GuardianDetector = z.enum(["no_progress", "repetition", "drift", "cost", "errors", "duplicate"]);
export type GuardianDetector = z.infer<typeof GuardianDetector>;

export const GuardianDecisionId = z.string().regex(/^dec_[a-z2-7]{12}$/, "a decision's id looks like dec_k3v7q2m5x4ab");
export type GuardianDecisionId = z.infer<typeof GuardianDecisionId>;

/** Whoever writes them cuts them. */
export const GUARDIAN_TEXT_CHARACTERS_MAX = 500;
export const EVIDENCE_EVENTS_MAX = 20;
const text = z.string().max(GUARDIAN_TEXT_CHARACTERS_MAX);
/** Numbers of events of the same run. */
const evidence = z.array(z.int().positive()).max(EVIDENCE_EVENTS_MAX);
const Coherence = z.number().min(0).max(1);

/** One thing that was found, with its evidence. */
export const GuardianFinding = z.object({
  detector: GuardianDetector,
  /** How much it takes from the run's coherence. */
  severity: z.number().min(0).max(1),
  text,
  events: evidence,
});
export type GuardianFinding = z.infer<typeof GuardianFinding>;

/**
 * The guardian decided to do something about the run, and what it did follows in the same append: the two are true
 * together or not at all.
 */
export const GuardianDecided = defineEvent("guardian.decided", 1, {
  decision: GuardianDecisionId,
  action: GuardianAction,
  /** Of the run, at that moment: 1 where nothing is wrong. */
  coherence: Coherence,
  findings: z.array(GuardianFinding).min(1).max(GuardianDetector.options.length),
  text,
});
/** What came of a decision: progress came back within some steps, or did not. */
export const GuardianSettled = defineEvent("guardian.settled", 1, {
  decision: GuardianDecisionId,
  effect: z.enum(["progress", "none"]),
  text,
  events: evidence,
});
/** A model was asked whether the run still works on its task. Null: its answer could not be used. */
export const GuardianJudged = defineEvent("guardian.judged", 1, {
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
