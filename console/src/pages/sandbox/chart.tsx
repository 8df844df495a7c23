import { useEffect, useRef } from "react";
import Plot from "uplot";
import "uplot/dist/uPlot.min.css";
import styles from "./resources.module.css";

const HEIGHT_PX = 140;
const AXIS_PX = 64;
/** The minimum time span of the axis, so that the first minutes do not jump. */
const SPAN_MIN_S = 120;
const timeText = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const KIB_STEPS = Array.from({ length: 40 }, (_, power) => 1024 * 2 ** power);

export type ChartUnit = "cpus" | "bytes" | "count";
/** The minimum end of each axis, and its steps. */
const axes: Readonly<Record<ChartUnit, { least: number; steps: number[] }>> = {
  cpus: { least: 0.1, steps: [0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50] },
  bytes: { least: 1024 * 1024, steps: KIB_STEPS },
  count: { least: 4, steps: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000] },
};

/** One line over time. */
export default function Chart(props: {
  times: readonly number[];
  values: readonly (number | null)[];
  text(value: number): string;
  unit: ChartUnit;
}) {
  const { times, values } = props;
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<Plot | null>(null);
  const latestProps = useRef(props);
  latestProps.current = props;
  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    const newPlot = new Plot(optionsOf(element, latestProps.current), dataOf(latestProps.current), element);
    plot.current = newPlot;
    const sizes = new ResizeObserver(() => newPlot.setSize({ width: element.clientWidth, height: HEIGHT_PX }));
    sizes.observe(element);
    return () => {
      sizes.disconnect();
      newPlot.destroy();
    };
  }, []);
  useEffect(() => plot.current?.setData(dataOf({ times, values })), [times, values]);
  return <div ref={place} className={styles.chart} aria-hidden="true" />;
}

const dataOf = ({ times, values }: { times: readonly number[]; values: readonly (number | null)[] }): Plot.AlignedData => [
  [...times],
  [...values],
];

function optionsOf(element: HTMLElement, { text, unit }: { text(value: number): string; unit: ChartUnit }): Plot.Options {
  const styles = getComputedStyle(element);
  const font = `11px ${styles.fontFamily}`;
  // A canvas does not support CSS variables, so we read the computed colors.
  const [line, quiet, grid] = [styles.color, styles.outlineColor, styles.borderTopColor];
  return {
    width: element.clientWidth,
    height: HEIGHT_PX,
    legend: { show: false },
    cursor: { show: false },
    scales: {
      x: { range: (_plot, min, max) => [Math.min(min, max - SPAN_MIN_S), max] },
      y: { range: (_plot, _min, max) => [0, Math.max(max ?? 0, axes[unit].least) * 1.15] },
    },
    series: [{}, { stroke: line, width: 1.5, fill: `color-mix(in srgb, ${line}, transparent 88%)`, points: { show: false } }],
    axes: [
      {
        stroke: quiet,
        font,
        grid: { show: false },
        ticks: { show: false },
        size: 24,
        space: 90,
        values: (_plot, ticks) => ticks.map((tick) => timeText.format(tick * 1000)),
      },
      {
        stroke: quiet,
        font,
        size: AXIS_PX,
        space: 36,
        grid: { stroke: grid, width: 1 },
        ticks: { show: false },
        incrs: axes[unit].steps,
        values: (_plot, ticks) => ticks.map((tick) => text(tick).replace(" CPUs", "")),
      },
    ],
  };
}
