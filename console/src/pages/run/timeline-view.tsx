import { useVirtualizer } from "@tanstack/react-virtual";
import { ArrowDown } from "lucide-react";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { useLocation } from "wouter";
import type { RunView } from "../../../../src/contract/run-verbs.ts";
import type { SessionPoint } from "../../../../src/contract/session-verbs.ts";
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
  /** Where its files were kept. */
  points: readonly SessionPoint[];
  /** How often something was said to the agent here: whoever does wants to see what comes of it. */
  sent: number;
  timeline: Timeline;
  version: number;
  isOpen: boolean;
  /** The event that the address names. */
  eventSeq: number | null;
  find: string;
  withQuiet: boolean;
  onChange(changes: Readonly<Record<string, string | null>>): void;
}

const AT_END_PX = 60;
const OVERSCAN_ROWS = 4;

/** A run's items, of which those in view exist. While it goes on, the end stays in view until somebody scrolls away. */
export function TimelineView(props: TimelineViewProps) {
  const { run, view, points, sent, timeline, version, isOpen, eventSeq, find, withQuiet, onChange } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const [isFollowing, setFollowing] = useState(eventSeq === null && isOpen);
  /** The item that was gone to in the map, until somebody scrolls: at the end, several have no place of their own in view. */
  const [mapped, setMapped] = useState<number | null>(null);
  useEffect(() => {
    if (sent > 0) setFollowing(true);
  }, [sent]);
  const leave = () => {
    setFollowing(false);
    setMapped(null);
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: the timeline changes in place, and the version with it.
  const shown = useMemo(
    () => timeline.items.flatMap((item, index) => (item.isQuiet === true && !withQuiet ? [] : [index])),
    [timeline, version, withQuiet],
  );
  const rows = useVirtualizer({
    count: shown.length,
    getScrollElement: () => scroller.current,
    estimateSize: (row) => estimatedHeightPx(timeline.items[shown[row] ?? -1]),
    getItemKey: (row) => timeline.items[shown[row] ?? -1]?.seq ?? row,
    overscan: OVERSCAN_ROWS,
  });
  const [, navigate] = useLocation();
  const onPlace = useCallback((seq: number) => navigate(`/runs/${run}?event=${seq}`, { replace: true }), [navigate, run]);
  const rowOf = (item: number) => {
    const row = shown.findLastIndex((index) => index <= item);
    return row === -1 ? 0 : row;
  };
  const goTo = (row: number) => {
    setFollowing(false);
    rows.scrollToIndex(row, { align: "center" });
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: with every change, to where the end is then.
  useLayoutEffect(() => {
    if (isFollowing && shown.length > 0) rows.scrollToIndex(shown.length - 1, { align: "end" });
  }, [isFollowing, version, shown.length]);
  const target = eventSeq === null ? null : indexOfSeq(timeline, eventSeq);
  const targetRow = target === null ? null : rowOf(target);
  const isThere = eventSeq !== null && timeline.lastSeq >= eventSeq;
  // biome-ignore lint/correctness/useExhaustiveDependencies: once, when the event that the address names is there.
  useEffect(() => {
    if (isThere && targetRow !== null) goTo(targetRow);
  }, [eventSeq, isThere]);
  const found = useFound(timeline, { version, shown, find });
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
        current={mapped ?? shown[firstInView(items, rows.scrollOffset ?? 0, scroller.current?.clientHeight ?? 0)] ?? 0}
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
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard.
        tabIndex={0}
        role="log"
        aria-label="Timeline"
        aria-live="off"
      >
        <div className={styles.all} style={{ blockSize: rows.getTotalSize() }}>
          {items.map(({ key, index, start }) => {
            const item = timeline.items[shown[index] ?? -1];
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
 * The row that a reader looks at: the first that begins in view, unless one before it still fills most of the view. What is
 * drawn beyond the edges, so that scrolling is smooth, does not count.
 */
function firstInView(items: readonly { index: number; start: number }[], offsetPx: number, heightPx: number): number {
  const first = items.findIndex(({ start }) => start >= offsetPx);
  const begun = items[first];
  if (begun !== undefined && begun.start < offsetPx + heightPx / 2) return begun.index;
  return (first === -1 ? items.at(-1) : (items[first - 1] ?? begun))?.index ?? 0;
}
