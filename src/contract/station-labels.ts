/** The label of a run that is a driven thing's child: the thing's stream. Its end is told to the thing by it. */
export const DRIVEN_LABEL = "caisson.driven";
/** Which of the thing's effects such a run was started for: whoever comes after a crash finds it by that. */
export const EFFECT_LABEL = "caisson.effect";

/** By these the station finds what belongs together; whatever begins with `caisson.` is its own as well. */
const stationLabels = { run: ["spec", "spec-key"], sandbox: ["run", "session", "viewer"] } as const;

export function isStationLabel(kind: "run" | "sandbox", key: string): boolean {
  return key.startsWith("caisson.") || (stationLabels[kind] as readonly string[]).includes(key);
}
