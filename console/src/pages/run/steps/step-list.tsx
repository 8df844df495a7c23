import { useVirtualizer } from "@tanstack/react-virtual";
import { GitFork } from "lucide-react";
import { useEffect, useRef } from "react";
import type { TimelineStep } from "../../../../../src/contract/run/run-timeline.ts";
import { cost } from "../../../parts/amounts.ts";
import { visibleText } from "../../../parts/visible-text.ts";
import { changedText } from "./step-scale.ts";
import styles from "./steps.module.css";

const ROW_PX = 52;
const OVERSCAN_ROWS = 6;

interface StepListProps {
  steps: readonly TimelineStep[];
  chosen: number;
  forked: ReadonlySet<number>;
  onChoose(step: number): void;
}

/** Lists what each step did, changed and cost, with only the rows in view rendered. */
export function StepList({ steps, chosen, forked, onChoose }: StepListProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const rows = useVirtualizer({
    count: steps.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    overscan: OVERSCAN_ROWS,
  });
  const chosenRow = steps.findIndex(({ step }) => step === chosen);
  useEffect(() => {
    if (chosenRow >= 0) rows.scrollToIndex(chosenRow);
  }, [chosenRow, rows]);
  return (
    <div ref={scroller} className={styles.list}>
      <ol aria-label="Steps" style={{ blockSize: rows.getTotalSize() }}>
        {rows.getVirtualItems().map(({ index, start, size }) => {
          const step = steps[index];
          if (step === undefined) return null;
          return (
            <li key={step.step} style={{ blockSize: size, translate: `0 ${start}px` }}>
              <button type="button" className={styles.row} aria-current={step.step === chosen} onClick={() => onChoose(step.step)}>
                <span className={styles.number}>{step.step}</span>
                <span className={styles.did}>{visibleText(didText(step))}</span>
                {forked.has(step.step) && <GitFork aria-label="Forked after this step" />}
                <span className={styles.about}>
                  {changedText(step)}
                  {step.costUsd !== null && ` · ${cost(step.costUsd)}`}
                  {step.isInherited && " · inherited"}
                </span>
              </button>
            </li>
          );
        })}
      </ol>
    </div>
  );
}

/** Returns what a step did, in one line: its tools, or the beginning of the answer. */
export function didText({ tools, text }: Pick<TimelineStep, "tools" | "text">): string {
  const names = [...new Set(tools)].join(", ");
  return names === "" ? text.replaceAll(/\s+/g, " ") || "no answer yet" : names;
}
