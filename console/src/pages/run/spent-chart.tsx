import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { tokenColor } from "../../design/token-color.ts";
import { cost, tokens } from "../../parts/amounts.ts";
import styles from "./run-details.module.css";
import type { Spent } from "./timeline.ts";

const HEIGHT_PX = 110;
/** The possible steps of the time axis. */
const SECONDS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 28_800, 86_400];
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });

/** A chart of cumulative tokens and cost. */
export default function SpentChart({ spent, version }: { spent: readonly Spent[]; version: number }) {
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | null>(null);
  useEffect(() => {
    const at = place.current;
    if (at === null) return;
    chart.current = new uPlot(optionsFor(at), [[], [], []], at);
    const resized = new ResizeObserver(() => chart.current?.setSize({ width: at.clientWidth, height: HEIGHT_PX }));
    resized.observe(at);
    return () => {
      resized.disconnect();
      chart.current?.destroy();
      chart.current = null;
    };
  }, []);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the list grows in place, and the version with it.
  useEffect(() => {
    chart.current?.setData([spent.map(({ atMs }) => atMs / 1000), spent.map((each) => each.tokens), spent.map(({ costUsd }) => costUsd)]);
  }, [spent, version]);
  const last = spent.at(-1);
  const summary = last === undefined ? "" : `${tokens(last.tokens)} tokens, ${cost(last.costUsd)}`;
  return <div ref={place} className={styles.chart} role="img" aria-label={`Tokens and cost over time; now ${summary}`} />;
}

function optionsFor(at: HTMLElement): uPlot.Options {
  const look = getComputedStyle(at);
  const color = (token: string) => tokenColor(at, token);
  const axis = { stroke: color("--text-3"), font: `10px ${look.fontFamily}`, grid: { show: false }, ticks: { show: false } };
  return {
    width: at.clientWidth,
    height: HEIGHT_PX,
    legend: { show: false },
    cursor: { show: false },
    scales: { cost: { range: (_, __, max) => [0, Math.max(max, 0.01)] }, y: { range: (_, __, max) => [0, Math.max(max, 1)] } },
    axes: [
      { ...axis, size: 22, space: 90, incrs: SECONDS, values: (_, ticks) => ticks.map((tick) => clock.format(tick * 1000)) },
      { ...axis, size: 38, values: (_, values) => values.map(tokens) },
      { ...axis, side: 1, scale: "cost", size: 44, values: (_, values) => values.map(cost) },
    ],
    series: [
      {},
      { stroke: color("--accent"), width: 1.5, fill: color("--busy-fill"), points: { show: false } },
      { stroke: color("--warn"), width: 1.5, scale: "cost", points: { show: false } },
    ],
  };
}
