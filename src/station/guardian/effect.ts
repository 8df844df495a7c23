import type { GuardianConfig } from "../../contract/guardian-config.ts";
import { JUDGED_COHERENT } from "./detectors.ts";
import type { Trajectory } from "./trajectory.ts";

export interface Effect {
  effect: "progress" | "none";
  text: string;
  events: number[];
}

/**
 * What came of the decision that stands: null while it may still show. A person who had a word in between gave the run
 * as many steps again.
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
  return { effect: "none", text: `${activeSteps - since} steps later there was no progress`, events: [] };
}

function backOnTask({ judged, calls }: Trajectory, since: number): Effect | null {
  if (judged.seq > since && judged.coherence !== null && judged.coherence >= JUDGED_COHERENT)
    return { effect: "progress", text: `the judge says ${judged.coherence}`, events: [judged.seq] };
  const call = calls.find(({ seq, isOnTask }) => seq > since && isOnTask);
  return call === undefined ? null : { effect: "progress", text: "it works on its task again", events: [call.seq] };
}
