import type { GuardianConfig } from "../../contract/guardian-config.ts";
import type { GuardianFinding } from "../../contract/guardian-event.ts";
import { similarity } from "./seen-call.ts";
import type { Trajectory } from "./trajectory.ts";

/** Tasks that are compared for each run. */
const OTHERS_MAX = 200;
/** A word or two are often the same by chance. */
const TASK_CHARACTERS_MIN = 24;
const FILES_SHARED_MIN = 2;
const SEVERITY = 0.35;

/**
 * Another run that was there first, has nearly the same task, and works on the same files, or began before one that
 * still waits. Runs of one parent, and of different owners, are somebody's intention. Whether the two work on the same
 * folder is for the caller to find out.
 */
export function duplicateOf(
  trajectory: Trajectory,
  others: Iterable<Trajectory>,
  settings: Pick<GuardianConfig, "duplicates">,
): { other: Trajectory; finding: GuardianFinding } | null {
  if (trajectory.parent !== null || trajectory.isKnownDuplicate || trajectory.task.length < TASK_CHARACTERS_MIN) return null;
  let looked = 0;
  for (const other of others) {
    if (!isCandidate(trajectory, other)) continue;
    looked += 1;
    if (looked > OTHERS_MAX) return null;
    const same = similarity(trajectory.task, other.task);
    if (same < settings.duplicates) continue;
    const shared = trajectory.files.filter((file) => other.files.includes(file));
    if (trajectory.status === "working" && shared.length < FILES_SHARED_MIN) continue;
    // No names of files: what another run wrote is not told to this one.
    const files = shared.length === 0 ? "" : `, and both changed ${shared.length} of the same files`;
    const text = `${other.run} was there first and has ${Math.round(same * 100)} % of the same task${files}`;
    return { other, finding: { detector: "duplicate", severity: SEVERITY, text, events: [] } };
  }
  return null;
}

function isCandidate(trajectory: Trajectory, other: Trajectory): boolean {
  return (
    other.run !== trajectory.run &&
    other.parent === null &&
    other.owner === trajectory.owner &&
    other.agent === trajectory.agent &&
    other.status === "working" &&
    (other.createdAt < trajectory.createdAt || (other.createdAt === trajectory.createdAt && other.run < trajectory.run))
  );
}
