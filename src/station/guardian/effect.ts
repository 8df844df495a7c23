import type { GuardianConfig } from "../../contract/guardian/guardian-config.ts";
import { JUDGED_COHERENT } from "./detectors.ts";
import type { Trajectory } from "./trajectory.ts";

export interface Effect {
  effect: "progress" | "none";
  text: string;
  events: number[];
}

/**
 * Returns the effect of the standing decision, or null while it may still appear. A message from a person restarts the
 * count of steps.
 */
export function effectOf(trajectory: Trajectory, { effectSteps }: Pick<GuardianConfig, "effectSteps">): Effect | null {
  const { standing, progress, activeSteps } = trajectory;
  if (standing === null) return null;
  if (progress.seq > standing.seq && !progress.byPerson) return { effect: "progress", text: progress.text, events: [progress.seq] };
  const isAboutDrift = standing.detectors.every((detector) => detector === "drift");
  const back = isAboutDrift ? backOnTask(trajectory, standing.seq) : null;
  if (back !== null) return back;
  const since = Math.max(standing.step, progress.seq > standing.seq ? progress.step : 0);
  if (activeSteps - since < effectSteps) return null;
  return { effect: "none", text: `no progress after ${activeSteps - since} more steps`, events: [] };
}

function backOnTask({ judged, calls }: Trajectory, since: number): Effect | null {
  if (judged.seq > since && judged.coherence !== null && judged.coherence >= JUDGED_COHERENT)
    return { effect: "progress", text: `the judge says ${judged.coherence}`, events: [judged.seq] };
  const call = calls.find(({ seq, isOnTask }) => seq > since && isOnTask);
  return call === undefined ? null : { effect: "progress", text: "it is working on its task again", events: [call.seq] };
}
