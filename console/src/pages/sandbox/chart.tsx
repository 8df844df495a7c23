import { useEffect, useRef } from "react";
import Plot from "uplot";
import "uplot/dist/uPlot.min.css";
import styles from "./resources.module.css";

const HEIGHT_PX = 140;
const AXIS_PX = 64;

/** One line over time. */
export default function Chart(props: {
  times: readonly number[];
  values: readonly (number | null)[];
  text(value: number): string;
  isWhole: boolean;
}) {
  const { times, values } = props;
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<Plot | null>(null);
  const given = useRef(props);
  given.current = props;
  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    const made = new Plot(optionsOf(element, given.current), dataOf(given.current), element);
    plot.current = made;
    const sizes = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: HEIGHT_PX }));
    sizes.observe(element);
    return () => {
      sizes.disconnect();
      made.destroy();
    };
  }, []);
  useEffect(() => plot.current?.setData(dataOf({ times, values })), [times, values]);
  return <div ref={place} className={styles.chart} aria-hidden="true" />;
}

const dataOf = ({ times, values }: { times: readonly number[]; values: readonly (number | null)[] }): Plot.AlignedData => [
  [...times],
  [...values],
];

function optionsOf(element: HTMLElement, { text, isWhole }: { text(value: number): string; isWhole: boolean }): Plot.Options {
  const styles = getComputedStyle(element);
  const font = `11px ${styles.fontFamily}`;
  // A canvas knows no variables: the colours as they come out here.
  const [line, quiet, grid] = [styles.color, styles.outlineColor, styles.borderTopColor];
  return {
    width: element.clientWidth,
    height: HEIGHT_PX,
    legend: { show: false },
    cursor: { show: false },
    scales: { y: { range: (_plot, _min, max) => [0, Math.max(max ?? 0, isWhole ? 4 : 0.0001) * 1.15] } },
    series: [{}, { stroke: line, width: 1.5, fill: `color-mix(in srgb, ${line}, transparent 88%)`, points: { show: false } }],
    axes: [
      { stroke: quiet, font, grid: { show: false }, ticks: { show: false }, size: 24, space: 80 },
      {
        stroke: quiet,
        font,
        size: AXIS_PX,
        space: 36,
        grid: { stroke: grid, width: 1 },
        ticks: { show: false },
        ...(isWhole && { incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000] }),
        values: (_plot, ticks) => ticks.map((tick) => text(tick).replace(" CPUs", "")),
      },
    ],
  };
}
