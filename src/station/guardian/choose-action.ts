import type { GuardianConfig } from "../../contract/guardian-config.ts";
import { GuardianAction } from "../../contract/guardian-config.ts";
import type { GuardianFinding } from "../../contract/guardian-event.ts";
import { round } from "./detectors.ts";
import type { Trajectory } from "./trajectory.ts";

/** What is left of a run's coherence with each decision that it did not heed. */
const UNHEEDED = 0.75;

const order = GuardianAction.options;
const strength = (action: GuardianAction) => order.indexOf(action);

/** 1 where nothing is wrong; each finding takes its severity from what is left. */
export function coherenceOf({ unheeded }: Pick<Trajectory, "unheeded">, findings: readonly GuardianFinding[]): number {
  if (findings.length === 0) return 1;
  return round(findings.reduce((left, { severity }) => left * (1 - severity), UNHEEDED ** unheeded));
}

/** The strongest thing that may be done about a run: the station's bound, or the agent's where that is milder. */
export function atMost({ asked, parent }: Pick<Trajectory, "asked" | "parent">, settings: GuardianConfig): GuardianAction {
  // A run that another one waits for is spoken to; whether it is held or stopped is up to the one that asked for it.
  const bounds = [settings.atMost, asked.atMost ?? settings.atMost, parent === null ? settings.atMost : "nudge"] as const;
  return bounds.reduce((mildest, each) => (strength(each) < strength(mildest) ? each : mildest));
}

/** Whether the guardian watches a run; null: it does, else why not. */
export function unwatchedBecause({ asked }: Pick<Trajectory, "asked">, { watch }: Pick<GuardianConfig, "watch">): string | null {
  if (watch === "none") return "the station's guardian is off";
  if (asked.enabled === false) return "it is off for this run or its agent";
  if (watch === "asked" && asked.enabled !== true) return "it watches only runs that were started with it";
  return null;
}

/**
 * What to do about a run whose coherence is this low: null for nothing. A run is told before it is held or stopped: for
 * that it must have passed over an earlier decision. Where nobody is there to be asked nothing is held.
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
