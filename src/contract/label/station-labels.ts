/** Label of a run that is a durable job's child: the job's stream. It connects the run's end to the job. */
export const JOB_LABEL = "caisson.driven";
/** The effect of the job for which the run was started. After a crash the next driver finds the run by it. */
export const EFFECT_LABEL = "caisson.effect";

/**
 * Reserved labels, with which the station relates its records. All keys that begin with `caisson.` are reserved as
 * well.
 */
const stationLabels = { run: ["spec", "spec-key"], sandbox: ["run", "session", "viewer"] } as const;

export function isStationLabel(kind: "run" | "sandbox", key: string): boolean {
  return key.startsWith("caisson.") || (stationLabels[kind] as readonly string[]).includes(key);
}
