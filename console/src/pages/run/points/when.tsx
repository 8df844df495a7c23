import type { RunView } from "../../../../../src/contract/run/run-verbs.ts";
import type { SessionPoint } from "../../../../../src/contract/session/session-verbs.ts";
import { useFilterParams } from "../../../parts/filter-params.ts";
import { FilterChoice } from "../../../parts/filters.tsx";
import { PointActions } from "./point-actions.tsx";
import styles from "./points.module.css";
import { pointWords } from "./use-points.ts";

/** Chooses the files to show: the current ones, or those of a point. */
export function When({ view, points, point }: { view: RunView; points: readonly SessionPoint[]; point: SessionPoint | null }) {
  const [, change] = useFilterParams();
  if (points.length === 0 && point === null) return null;
  const choices = point === null || points.includes(point) ? points : [point, ...points];
  return (
    <div className={styles.then}>
      <FilterChoice
        label="Current state"
        choices={choices.map((each) => ({ value: String(each.step), label: `State ${pointWords(each)}` }))}
        value={point === null ? null : String(point.step)}
        onValue={(at) => change({ at })}
      />
      {point !== null && <PointActions view={view} point={point} />}
    </div>
  );
}
