import { useQuery } from "@tanstack/react-query";
import type { RunView } from "../../../../../src/contract/run/run-verbs.ts";
import type { SessionPoint } from "../../../../../src/contract/session/session-verbs.ts";
import { useStation } from "../../../data/station.tsx";

const none: readonly SessionPoint[] = [];

/** Returns the points of a run, earliest first. */
export function usePoints(view: RunView | undefined): readonly SessionPoint[] {
  const station = useStation();
  const { data } = useQuery({
    queryKey: ["points", view?.run, view?.status],
    enabled: view !== undefined,
    queryFn: async ({ signal }) =>
      onePerStep((await station.sessions.points(view?.session ?? "", { signal })).filter(({ run }) => run === view?.run)),
    // A discarded session has no points.
    retry: false,
  });
  return data ?? none;
}

/** Where a turn began after a step, the files were stored twice. The point of the turn is the one that can be undone to. */
export function onePerStep(points: readonly SessionPoint[]): SessionPoint[] {
  const byStep = new Map<number, SessionPoint>();
  for (const point of points) if (byStep.get(point.step)?.turn === undefined) byStep.set(point.step, point);
  return [...byStep.values()];
}

/** Returns the last point up to a step. */
export function pointBefore(points: readonly SessionPoint[], step: number): SessionPoint | undefined {
  return points.findLast((point) => point.step <= step);
}

/**
 * Returns the point that `at` in the address names; null for the present, or if that step has no point. The run that a
 * fork comes from has the points of the steps that the fork inherited.
 */
export function pointInAddress(
  points: readonly SessionPoint[],
  { at, view }: { at: string | null; view: Pick<RunView, "run" | "forked" | "createdAt"> | undefined },
): SessionPoint | null {
  const named = at === null || at === "" ? Number.NaN : Number(at);
  const own = points.find(({ step }) => step === named);
  if (own !== undefined) return own;
  const isInherited = Number.isInteger(named) && named >= 0 && named <= (view?.forked?.step ?? -1);
  return isInherited && view !== undefined ? { run: view.run, step: named, at: view.createdAt } : null;
}

export function pointWords({ step }: Pick<SessionPoint, "step">): string {
  return step === 0 ? "before the first step" : `after step ${step}`;
}
