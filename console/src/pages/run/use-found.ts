import { useMemo, useState } from "react";
import type { Timeline } from "./timeline.ts";
import { textOf } from "./timeline-item.ts";

export interface Found {
  rows: readonly number[];
  current: number;
  setCurrent(current: number): void;
}

/** Finds the rows that contain the search text. */
export function useFound(
  timeline: Timeline,
  { version, shown: shownIndexes, find }: { version: number; shown: readonly number[]; find: string },
): Found {
  const [current, setCurrent] = useState(-1);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the timeline changes in place, and the version with it.
  const rows = useMemo(() => {
    const words = find.trim().toLowerCase();
    if (words === "") return [];
    return shownIndexes.flatMap((index, row) => {
      const item = timeline.items[index];
      return item !== undefined && textOf(item).toLowerCase().includes(words) ? [row] : [];
    });
  }, [timeline, version, shownIndexes, find]);
  return { rows, current, setCurrent };
}
