import { useEffect, useRef } from "react";
import type { RunView } from "../../../../src/contract/run/run-verbs.ts";
import type { SessionPoint } from "../../../../src/contract/session/session-verbs.ts";
import { PointActions } from "./points/point-actions.tsx";
import { pointBefore } from "./points/use-points.ts";
import type { Timeline } from "./timeline.ts";
import type { TimelineItem } from "./timeline-item.ts";
import styles from "./timeline-view.module.css";

const HEIGHT_PX = 18;

/** A map of the whole run, from left to right, with a handle to move to any place. */
export function Minimap({
  view,
  points,
  timeline,
  version,
  current,
  onGo,
}: {
  view: RunView;
  points: readonly SessionPoint[];
  timeline: Timeline;
  version: number;
  /** The index of the first item in view. */
  current: number;
  onGo(item: number): void;
}) {
  const canvas = useRef<HTMLCanvasElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the timeline changes in place, and the version with it.
  useEffect(() => draw(canvas.current, timeline.items), [timeline, version]);
  const { items, steps, files } = timeline;
  if (items.length < 2) return null;
  const step = steps.findLast(({ item }) => item <= current);
  const changed = [...files.values()].filter(({ atStep }) => atStep <= (step?.step ?? 0));
  const point = pointBefore(points, step?.step ?? 0);
  const where = step === undefined ? "before the first step" : `step ${step.step} of ${steps.at(-1)?.step ?? 0}`;
  return (
    <div className={styles.minimap}>
      <div className={styles.map}>
        <canvas ref={canvas} />
        <input
          type="range"
          min={0}
          max={items.length - 1}
          value={Math.min(current, items.length - 1)}
          aria-label="Position in the run"
          aria-valuetext={where}
          onChange={(event) => onGo(Number(event.target.value))}
        />
      </div>
      <span className={styles.where} title={changed.map(({ path }) => path).join("\n")}>
        {where}
        {changed.length > 0 && ` · ${changed.length} changed`}
      </span>
      {point !== undefined && <PointActions view={view} point={point} />}
    </div>
  );
}

function draw(canvas: HTMLCanvasElement | null, items: readonly TimelineItem[]): void {
  const context = canvas?.getContext("2d");
  if (canvas === null || context === null || context === undefined) return;
  const width = canvas.clientWidth;
  canvas.width = width;
  canvas.height = HEIGHT_PX;
  const style = getComputedStyle(canvas);
  const colors = new Map<string, string>();
  const color = (name: string) => {
    const known = colors.get(name);
    if (known !== undefined) return known;
    canvas.style.color = `var(${name})`;
    const resolved = style.color;
    colors.set(name, resolved);
    return resolved;
  };
  const bar = Math.max(1, Math.min(6, width / items.length - 1));
  for (const [index, item] of items.entries()) {
    const look = lookOf(item);
    if (look === null) continue;
    context.fillStyle = color(look.color);
    context.fillRect((index / items.length) * width, HEIGHT_PX - look.height, bar, look.height);
  }
}

function lookOf(item: TimelineItem): { color: string; height: number } | null {
  if (item.isQuiet === true) return null;
  switch (item.kind) {
    case "tool":
      return {
        color: item.state === "error" || item.state === "lost" ? "--bad" : item.files.length > 0 ? "--good" : "--accent",
        height: 11,
      };
    case "words":
      return { color: "--text-3", height: 7 };
    case "question":
    case "denied":
    case "incident":
      return { color: "--warn", height: 16 };
    case "message":
      return { color: "--accent", height: 16 };
    case "ended":
      return { color: item.reason === "done" ? "--good" : "--bad", height: 18 };
    case "step":
      return { color: "--line-strong", height: 18 };
    default:
      return { color: "--line-strong", height: 5 };
  }
}
