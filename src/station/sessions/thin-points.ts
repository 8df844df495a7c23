import type { StoredPoint } from "../../contract/session/session.ts";

/** How many steps keep a point each. Of older ones, only the points before turns stay. */
const STEPS_MAX = 50;
/** How many turns can be undone; fewer in runtimes that store a whole snapshot for each. */
const TURNS_MAX = 200;
const SNAPSHOTS_MAX = 10;
/** The most that a session's points may take together. */
const SESSION_BYTES_MAX = 4 * 1024 ** 3;

/** Returns the points that a session keeps: the newest steps, then turns, within the room for them. Oldest first. */
export function thinPoints(points: readonly StoredPoint[]): StoredPoint[] {
  const steps = new Set(points.filter(({ step }) => step !== undefined).slice(-STEPS_MAX));
  const turns = new Set(points.filter(({ turnSeq, files }) => turnSeq !== undefined && files.kind !== "snapshot").slice(-TURNS_MAX));
  const isWhole = ({ turnSeq, files }: StoredPoint) => turnSeq !== undefined && files.kind === "snapshot";
  for (const point of points.filter(isWhole).slice(-SNAPSHOTS_MAX)) turns.add(point);
  const listed = points.filter((point) => steps.has(point) || turns.has(point));
  let left = SESSION_BYTES_MAX;
  const fits = listed.toReversed().map((point) => {
    left -= point.bytes ?? 0;
    return left >= 0;
  });
  return listed.filter((_, at) => fits[listed.length - 1 - at] === true);
}
