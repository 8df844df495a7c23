import { useVirtualizer } from "@tanstack/react-virtual";
import { ArrowDown } from "lucide-react";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { useLocation } from "wouter";
import type { RunView } from "../../../../src/contract/run/run-verbs.ts";
import type { SessionPoint } from "../../../../src/contract/session/session-verbs.ts";
import { Button } from "../../parts/button.tsx";
import { Minimap } from "./minimap.tsx";
import { indexOfSeq, type Timeline } from "./timeline.ts";
import { estimatedHeightPx, TimelineRow } from "./timeline-row.tsx";
import { TimelineTools } from "./timeline-tools.tsx";
import styles from "./timeline-view.module.css";
import { useFound } from "./use-found.ts";

interface TimelineViewProps {
  run: string;
  view: RunView;
  /** The points of the run. */
  points: readonly SessionPoint[];
  /** The number of messages sent from here. Each one scrolls to the end, to show its effect. */
  sent: number;
  timeline: Timeline;
  version: number;
  isOpen: boolean;
  /** The number of the event in the address. */
  eventSeq: number | null;
  find: string;
  withQuiet: boolean;
  onChange(changes: Readonly<Record<string, string | null>>): void;
}

const AT_END_PX = 60;
const OVERSCAN_ROWS = 4;

/** Shows a run's items and renders only those in view. Follows the end of an active run until the user scrolls away. */
export function TimelineView(props: TimelineViewProps) {
  const { run, view, points, sent, timeline, version, isOpen, eventSeq, find, withQuiet, onChange } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const [isFollowing, setFollowing] = useState(eventSeq === null && isOpen);
  /** The item chosen in the map, until the user scrolls. At the end, several items share a position. */
  const [mapped, setMapped] = useState<number | null>(null);
  useEffect(() => {
    if (sent > 0) setFollowing(true);
  }, [sent]);
  const leave = () => {
    setFollowing(false);
    setMapped(null);
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: the timeline changes in place, and the version with it.
  const shownIndexes = useMemo(
    () => timeline.items.flatMap((item, index) => (item.isQuiet === true && !withQuiet ? [] : [index])),
    [timeline, version, withQuiet],
  );
  const rows = useVirtualizer({
    count: shownIndexes.length,
    getScrollElement: () => scroller.current,
    estimateSize: (row) => estimatedHeightPx(timeline.items[shownIndexes[row] ?? -1]),
    getItemKey: (row) => timeline.items[shownIndexes[row] ?? -1]?.seq ?? row,
    overscan: OVERSCAN_ROWS,
  });
  const [, navigate] = useLocation();
  const onPlace = useCallback((seq: number) => navigate(`/runs/${run}?event=${seq}`, { replace: true }), [navigate, run]);
  const rowOf = (item: number) => {
    const row = shownIndexes.findLastIndex((index) => index <= item);
    return row === -1 ? 0 : row;
  };
  const goTo = (row: number) => {
    setFollowing(false);
    rows.scrollToIndex(row, { align: "center" });
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: the end moves with every change.
  useLayoutEffect(() => {
    if (isFollowing && shownIndexes.length > 0) rows.scrollToIndex(shownIndexes.length - 1, { align: "end" });
  }, [isFollowing, version, shownIndexes.length]);
  const target = eventSeq === null ? null : indexOfSeq(timeline, eventSeq);
  const targetRow = target === null ? null : rowOf(target);
  const isThere = eventSeq !== null && timeline.lastSeq >= eventSeq;
  // biome-ignore lint/correctness/useExhaustiveDependencies: once, when the event in the address arrives.
  useEffect(() => {
    if (isThere && targetRow !== null) goTo(targetRow);
  }, [eventSeq, isThere]);
  const found = useFound(timeline, { version, shown: shownIndexes, find });
  const onScroll = () => {
    const at = scroller.current;
    if (at === null) return;
    const isAtEnd = at.scrollHeight - at.scrollTop - at.clientHeight < AT_END_PX;
    if (!isAtEnd && isFollowing) return;
    if (isAtEnd && isOpen) setFollowing(true);
  };
  const items = rows.getVirtualItems();
  return (
    <div className={styles.view}>
      <TimelineTools {...{ find, found, withQuiet, onChange, goTo }} />
      <Minimap
        {...{ view, points, timeline, version }}
        current={mapped ?? shownIndexes[firstInView(items, rows.scrollOffset ?? 0, scroller.current?.clientHeight ?? 0)] ?? 0}
        onGo={(item) => {
          setMapped(item);
          goTo(rowOf(item));
        }}
      />
      <div
        className={styles.scroller}
        ref={scroller}
        onScroll={onScroll}
        onWheel={(event) => (event.deltaY < 0 ? leave() : setMapped(null))}
        onTouchMove={leave}
        onKeyDown={(event) => ["ArrowUp", "PageUp", "Home"].includes(event.key) && leave()}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard.
        tabIndex={0}
        role="log"
        aria-label="Timeline"
        aria-live="off"
      >
        <div className={styles.all} style={{ blockSize: rows.getTotalSize() }}>
          {items.map(({ key, index, start }) => {
            const item = timeline.items[shownIndexes[index] ?? -1];
            if (item === undefined) return null;
            const isTarget = index === targetRow || found.rows[found.current] === index;
            return (
              <TimelineRow key={key} {...{ item, run, isOpen, isTarget, index, onPlace }} startPx={start} measure={rows.measureElement} />
            );
          })}
        </div>
      </div>
      {isOpen && !isFollowing && (
        <Button
          className={styles.follow ?? ""}
          icon={<ArrowDown />}
          onClick={() => {
            setMapped(null);
            setFollowing(true);
          }}
        >
          Follow
        </Button>
      )}
    </div>
  );
}

/**
 * Returns the row that the reader looks at: the first that starts in the upper half of the view, or the one before it.
 * Rows drawn outside the view for smooth scrolling do not count.
 */
function firstInView(items: readonly { index: number; start: number }[], offsetPx: number, heightPx: number): number {
  const first = items.findIndex(({ start }) => start >= offsetPx);
  const firstItem = items[first];
  if (firstItem !== undefined && firstItem.start < offsetPx + heightPx / 2) return firstItem.index;
  return (first === -1 ? items.at(-1) : (items[first - 1] ?? firstItem))?.index ?? 0;
}
