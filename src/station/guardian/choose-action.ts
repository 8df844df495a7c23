import type { GuardianConfig } from "../../contract/guardian/guardian-config.ts";
import { GuardianAction } from "../../contract/guardian/guardian-config.ts";
import type { GuardianFinding } from "../../contract/guardian/guardian-event.ts";
import { round } from "./detectors.ts";
import type { Trajectory } from "./trajectory.ts";

/** The factor by which each ignored decision lowers a run's coherence. */
const UNHEEDED = 0.75;

const order = GuardianAction.options;
const strength = (action: GuardianAction) => order.indexOf(action);

/** Returns 1 if nothing is wrong; each finding takes its severity from the rest. */
export function coherenceOf({ unheeded }: Pick<Trajectory, "unheeded">, findings: readonly GuardianFinding[]): number {
  if (findings.length === 0) return 1;
  return round(findings.reduce((left, { severity }) => left * (1 - severity), UNHEEDED ** unheeded));
}

/** Returns the strongest action allowed for a run: the station's limit, or the agent's if that is milder. */
export function atMost({ asked: preferences, parent }: Pick<Trajectory, "asked" | "parent">, settings: GuardianConfig): GuardianAction {
  // A sub-run is only nudged: its parent decides whether to pause or stop it.
  const bounds = [settings.atMost, preferences.atMost ?? settings.atMost, parent === null ? settings.atMost : "nudge"] as const;
  return bounds.reduce((mildest, each) => (strength(each) < strength(mildest) ? each : mildest));
}

/** Returns why the guardian does not watch a run, or null if it does. */
export function unwatchedBecause(
  { asked: preferences }: Pick<Trajectory, "asked">,
  { watch }: Pick<GuardianConfig, "watch">,
): string | null {
  if (watch === "none") return "the station's guardian is off";
  if (preferences.enabled === false) return "it is off for this run or its agent";
  if (watch === "asked" && preferences.enabled !== true) return "it only watches runs that request it";
  return null;
}

/**
 * Returns the action for a run with this coherence, or null for none. A run is nudged before it is paused or stopped:
 * it must have ignored an earlier decision. It is not paused if no person can be asked.
 */
export function chooseAction(trajectory: Trajectory, coherence: number, settings: GuardianConfig): GuardianAction | null {
  const bound = strength(atMost(trajectory, settings));
  const isDue = (action: GuardianAction) => coherence < settings.bands[action] && strength(action) <= bound;
  if (trajectory.status === "queued") return isDue("reprioritize") ? "reprioritize" : null;
  if (trajectory.status !== "working") return null;
  const wasTold = trajectory.unheeded > 0;
  if (wasTold && isDue("stop")) return "stop";
  if (wasTold && trajectory.isAttended && isDue("pause")) return "pause";
  return isDue("nudge") ? "nudge" : null;
}
