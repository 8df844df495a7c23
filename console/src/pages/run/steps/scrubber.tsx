import { ChevronLeft, ChevronRight } from "lucide-react";
import { type CSSProperties, useMemo } from "react";
import type { TimelineStep } from "../../../../../src/contract/run/run-timeline.ts";
import { Button } from "../../../parts/button.tsx";
import { positionText, stepBars } from "./step-scale.ts";
import styles from "./steps.module.css";

interface ScrubberProps {
  steps: readonly TimelineStep[];
  chosen: number;
  /** The step that the chosen one is compared with. */
  base: number | null;
  /** The steps after which forks begin. */
  forked: ReadonlySet<number>;
  onChoose(step: number): void;
}

/** Moves through the steps of a run, by pointer, touch or arrow keys. Each bar is as high as its step changed much. */
export function Scrubber({ steps, chosen, base, forked, onChoose }: ScrubberProps) {
  const bars = useMemo(() => stepBars(steps), [steps]);
  const last = steps.at(-1)?.step ?? 0;
  return (
    <div className={styles.scrubber}>
      <Button
        look="plain"
        label="Previous step"
        icon={<ChevronLeft />}
        disabled={chosen === 0}
        onClick={() => onChoose(Math.max(0, chosen - 1))}
      />
      <div className={styles.track} style={{ "--places": bars.length + 1 } as CSSProperties}>
        <div className={styles.bars} aria-hidden="true">
          <span className={styles.bar} data-chosen={chosen === 0} />
          {bars.map((bar) => (
            <span
              key={bar.first}
              className={styles.bar}
              data-chosen={bar.first <= chosen && chosen <= bar.last}
              data-between={base !== null && bar.first > base && bar.last < chosen}
              data-inherited={bar.isInherited}
              data-stored={bar.isStored}
              data-forked={hasFork(forked, bar)}
              style={{ flexGrow: bar.last - bar.first + 1 }}
            >
              <span style={{ blockSize: `${bar.height * 100}%` }} />
            </span>
          ))}
        </div>
        <input
          type="range"
          min={0}
          max={last}
          value={chosen}
          aria-label="Step"
          aria-valuetext={positionText(steps, chosen)}
          onChange={(event) => onChoose(Number(event.target.value))}
        />
      </div>
      <Button
        look="plain"
        label="Next step"
        icon={<ChevronRight />}
        disabled={chosen >= last}
        onClick={() => onChoose(Math.min(last, chosen + 1))}
      />
    </div>
  );
}

function hasFork(forked: ReadonlySet<number>, { first, last }: { first: number; last: number }): boolean {
  for (let step = first; step <= last; step++) if (forked.has(step)) return true;
  return false;
}
