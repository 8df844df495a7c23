/** Who paused a run or durable job that brought down a station. */
export const BY_STATION = "station";

const BEGINNING = "The station stopped answering while it worked on this";

/** Returns the explanation for users, with what to do. */
export function poisonText(kind: string, id: string): string {
  const resume = kind === "run" ? `caisson resume ${id}` : kind === "spec" ? `caisson spec run ${id}` : `caisson ${kind} resume ${id}`;
  return `${BEGINNING} ${kind}, and was killed. It is paused so that the next station does not stop as well. Check what it was doing, then resume it: ${resume}`;
}

/** Returns whether the station paused it because it brought down a station. */
export function isPoisonPause(paused: { text: string } | null): paused is { text: string } {
  return paused?.text.startsWith(BEGINNING) === true;
}
