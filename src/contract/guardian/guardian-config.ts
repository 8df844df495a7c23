import { z } from "zod";
import { defaultConfig } from "../defaults/default-config.ts";

/** What the guardian may do with a run, from mildest to strongest. */
export const GuardianAction = z.enum(["nudge", "reprioritize", "pause", "stop"]);
export type GuardianAction = z.infer<typeof GuardianAction>;

const share = z.number().min(0).max(1);
const defaults = defaultConfig().guardian;

/** How a station's guardian monitors runs, and what it may do. */
export const GuardianConfig = z.strictObject({
  /** `all`: every run whose agent or caller has not opted out. `asked`: only runs that have opted in. */
  watch: z.enum(["all", "asked", "none"]).default(defaults.watch),
  /** The strongest action allowed. An agent file can only lower it. */
  atMost: GuardianAction.default(defaults.atMost),
  /** Runs with fewer steps or less working time are left alone. */
  stepsMin: z.int().min(1).max(10_000).default(defaults.stepsMin),
  workedMsMin: z.int().min(0).max(86_400_000).default(defaults.workedMsMin),
  /** The coherence below which each action is taken; 0: never. */
  bands: z
    .strictObject({
      nudge: share.default(defaults.bands.nudge),
      reprioritize: share.default(defaults.bands.reprioritize),
      pause: share.default(defaults.bands.pause),
      stop: share.default(defaults.bands.stop),
    })
    .prefault({}),
  /** Steps without a changed file, an improved test result, or anything new. */
  noProgressSteps: z.int().min(3).max(10_000).default(defaults.noProgressSteps),
  /** Nearly identical calls with nearly identical results. */
  repetitions: z.int().min(3).max(1000).default(defaults.repetitions),
  /** Consecutive failed calls. */
  errors: z.int().min(3).max(1000).default(defaults.errors),
  /** Spending since the last progress. */
  costUsdWithoutProgress: z.number().positive().default(defaults.costUsdWithoutProgress),
  tokensWithoutProgress: z.int().positive().default(defaults.tokensWithoutProgress),
  /** How similar two tasks must be to count as duplicates. */
  duplicates: share.default(defaults.duplicates),
  /** How many steps a decision has to take effect. */
  effectSteps: z.int().min(1).max(1000).default(defaults.effectSteps),
  /**
   * A model that judges whether a run still works on its task. Without one, the run's words and calls are compared with
   * the task.
   */
  judge: z
    .strictObject({
      model: z.string().min(1).optional(),
      everySteps: z.int().min(1).max(10_000).default(defaults.judge.everySteps),
      /** Limits per run. */
      callsMax: z.int().min(0).max(1000).default(defaults.judge.callsMax),
      costUsdMax: z.number().min(0).default(defaults.judge.costUsdMax),
      /** Limit across all runs. */
      callsPerHourMax: z.int().min(0).max(100_000).default(defaults.judge.callsPerHourMax),
    })
    .prefault({}),
});
export type GuardianConfig = z.infer<typeof GuardianConfig>;
