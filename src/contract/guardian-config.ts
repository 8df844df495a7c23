import { z } from "zod";
import { defaultConfig } from "./default-config.ts";

/** What the guardian may do about a run, the mildest first. */
export const GuardianAction = z.enum(["nudge", "reprioritize", "pause", "stop"]);
export type GuardianAction = z.infer<typeof GuardianAction>;

const share = z.number().min(0).max(1);
const defaults = defaultConfig().guardian;

/** How a station's guardian watches runs, and what it may do. */
export const GuardianConfig = z.strictObject({
  /** `all`: every run whose agent or caller did not switch it off. `asked`: those that were started with it. */
  watch: z.enum(["all", "asked", "none"]).default(defaults.watch),
  /** Nothing stronger than this is done. An agent's file can only ask for less. */
  atMost: GuardianAction.default(defaults.atMost),
  /** A run that has made fewer steps, or worked for less time, is left alone. */
  stepsMin: z.int().min(1).max(10_000).default(defaults.stepsMin),
  workedMsMin: z.int().min(0).max(86_400_000).default(defaults.workedMsMin),
  /** What is done below which coherence; 0: never. */
  bands: z
    .strictObject({
      nudge: share.default(defaults.bands.nudge),
      reprioritize: share.default(defaults.bands.reprioritize),
      pause: share.default(defaults.bands.pause),
      stop: share.default(defaults.bands.stop),
    })
    .prefault({}),
  /** Steps without a changed file, a test that does better, or anything new. */
  noProgressSteps: z.int().min(3).max(10_000).default(defaults.noProgressSteps),
  /** Calls that are nearly the same, with nearly the same result. */
  repetitions: z.int().min(3).max(1000).default(defaults.repetitions),
  /** Calls that fail, one after the other. */
  errors: z.int().min(3).max(1000).default(defaults.errors),
  /** Spent since the last progress. */
  costUsdWithoutProgress: z.number().positive().default(defaults.costUsdWithoutProgress),
  tokensWithoutProgress: z.int().positive().default(defaults.tokensWithoutProgress),
  /** How similar two tasks are to be the same work. */
  duplicates: share.default(defaults.duplicates),
  /** Steps that a decision has to show an effect. */
  effectSteps: z.int().min(1).max(1000).default(defaults.effectSteps),
  /** Asked whether a run still works on its task; without a model, its words and calls are compared with the task's. */
  judge: z
    .strictObject({
      model: z.string().min(1).optional(),
      everySteps: z.int().min(1).max(10_000).default(defaults.judge.everySteps),
      /** Of one run. */
      callsMax: z.int().min(0).max(1000).default(defaults.judge.callsMax),
      costUsdMax: z.number().min(0).default(defaults.judge.costUsdMax),
      /** Of all runs. */
      callsPerHourMax: z.int().min(0).max(100_000).default(defaults.judge.callsPerHourMax),
    })
    .prefault({}),
});
export type GuardianConfig = z.infer<typeof GuardianConfig>;
