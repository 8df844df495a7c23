import type { GuardianConfig } from "../../contract/guardian/guardian-config.ts";
import type { GuardianFinding } from "../../contract/guardian/guardian-event.ts";
import { similarity } from "./call-fingerprint.ts";
import type { Trajectory } from "./trajectory.ts";

/** The most tasks to compare for each run. */
const OTHERS_MAX = 200;
/** Short tasks are often the same by chance. */
const TASK_CHARACTERS_MIN = 24;
const FILES_SHARED_MIN = 2;
const SEVERITY = 0.35;

/**
 * Returns an older run that has nearly the same task and changes the same files; for a run that still waits, the task
 * is enough. Runs with a parent, forks of one run, and runs of different owners are intentional. The caller checks
 * whether both work on the same folder.
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
    // Contains no file names, because a run must not learn what another run wrote.
    const files = shared.length === 0 ? "" : `, and both changed ${shared.length} of the same files`;
    const text = `${other.run} started earlier with a task that is ${Math.round(same * 100)}% the same${files}`;
    return { other, finding: { detector: "duplicate", severity: SEVERITY, text, events: [] } };
  }
  return null;
}

const rootOf = ({ root, run }: Trajectory) => root ?? run;

function isCandidate(trajectory: Trajectory, other: Trajectory): boolean {
  return (
    other.run !== trajectory.run &&
    other.parent === null &&
    rootOf(other) !== rootOf(trajectory) &&
    other.owner === trajectory.owner &&
    other.agent === trajectory.agent &&
    other.status === "working" &&
    (other.createdAt < trajectory.createdAt || (other.createdAt === trajectory.createdAt && other.run < trajectory.run))
  );
}
