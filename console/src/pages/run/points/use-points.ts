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
    queryFn: async ({ signal }) => (await station.sessions.points(view?.session ?? "", { signal })).filter(({ run }) => run === view?.run),
    // A discarded session has no points.
    retry: false,
  });
  return data ?? none;
}

/** Returns the last point up to a step. */
export function pointBefore(points: readonly SessionPoint[], step: number): SessionPoint | undefined {
  return points.findLast((point) => point.step <= step);
}

/** Returns the point that `at` in the address names; null for the present, or if that step has no point. */
export function pointInAddress(points: readonly SessionPoint[], at: string | null): SessionPoint | null {
  if (at === null || at === "") return null;
  return points.find(({ step }) => step === Number(at)) ?? null;
}

export function pointWords({ step }: Pick<SessionPoint, "step">): string {
  return step === 0 ? "before the first step" : `after step ${step}`;
}
