import { useQuery } from "@tanstack/react-query";
import type { RunView } from "../../../../../src/contract/run-verbs.ts";
import type { SessionPoint } from "../../../../../src/contract/session-verbs.ts";
import { useStation } from "../../../station/station.tsx";

const none: readonly SessionPoint[] = [];

/** After which steps of a run its files were kept, the first one first. */
export function usePoints(view: RunView | undefined): readonly SessionPoint[] {
  const station = useStation();
  const { data } = useQuery({
    queryKey: ["points", view?.run, view?.status],
    enabled: view !== undefined,
    queryFn: async ({ signal }) => (await station.sessions.points(view?.session ?? "", { signal })).filter(({ run }) => run === view?.run),
    // A session that was discarded has none.
    retry: false,
  });
  return data ?? none;
}

/** The last one that is not after a step. */
export function pointBefore(points: readonly SessionPoint[], step: number): SessionPoint | undefined {
  return points.findLast((point) => point.step <= step);
}

/** What an address says with `at`; null for the present, and for what is no step after which files were kept. */
export function pointAsked(points: readonly SessionPoint[], at: string | null): SessionPoint | null {
  if (at === null || at === "") return null;
  return points.find(({ step }) => step === Number(at)) ?? null;
}

export function pointWords({ step }: Pick<SessionPoint, "step">): string {
  return step === 0 ? "before the first step" : `after step ${step}`;
}
