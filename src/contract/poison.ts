/** Who paused a run or a durable job whose turn took a station down. */
export const BY_STATION = "station";

const BEGINNING = "The station stopped answering while it worked on this";

/** What people read about it, with what to do. */
export function poisonText(kind: string, id: string): string {
  const resume = kind === "run" ? `caisson resume ${id}` : kind === "spec" ? `caisson spec run ${id}` : `caisson ${kind} resume ${id}`;
  return `${BEGINNING} ${kind}, and was killed. It is paused so that the next station does not stop as well. Look at what it was doing, then resume it: ${resume}`;
}

/** Whether a pause is one of those. */
export function isPoisonPause(paused: { text: string } | null): paused is { text: string } {
  return paused?.text.startsWith(BEGINNING) === true;
}
