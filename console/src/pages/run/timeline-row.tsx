import { memo } from "react";
import { ItemView } from "./item-view.tsx";
import { renderSubRun } from "./sub-run-lane.tsx";
import type { TimelineItem } from "./timeline-item.ts";
import styles from "./timeline-view.module.css";

/** Created once, because creating a formatter takes longer than drawing a row. */
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

interface TimelineRowProps {
  item: TimelineItem;
  run: string;
  isOpen: boolean;
  isTarget: boolean;
  index: number;
  startPx: number;
  measure(element: Element | null): void;
  onPlace(seq: number): void;
}

/** An item at its position. Memoized, because most rows do not change while the user scrolls. */
export const TimelineRow = memo(function TimelineRow(props: TimelineRowProps) {
  const { item, run, isOpen, isTarget, index, startPx, measure, onPlace } = props;
  const at = new Date(item.at);
  const time = clock.format(at);
  return (
    <article
      ref={measure}
      data-index={index}
      className={`${styles.item} ${isTarget ? styles.target : ""}`}
      style={{ transform: `translateY(${startPx}px)` }}
    >
      <a
        href={`/runs/${run}?event=${item.seq}`}
        className={styles.place}
        title={`${exact.format(at)} · event ${item.seq}`}
        aria-label={`${time}, link to event ${item.seq}`}
        onClick={(event) => {
          if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
          event.preventDefault();
          onPlace(item.seq);
        }}
      >
        <time dateTime={item.at}>{time}</time>
      </a>
      <div className={styles.content}>
        <ItemView item={item} run={run} isOpen={isOpen} renderLane={renderSubRun} />
      </div>
    </article>
  );
});

/** Estimates the height of an item, so that little moves when it is measured. */
export function estimatedHeightPx(item: TimelineItem | undefined): number {
  switch (item?.kind) {
    case "tool":
      return item.name === "edit" || item.name === "write" ? 150 : 48;
    case "words":
      return 32 + 20 * Math.ceil(Math.min(item.text.length, 2_000) / 110);
    case "question":
      return 140;
    case "message":
    case "denied":
      return 72;
    default:
      return 34;
  }
}
