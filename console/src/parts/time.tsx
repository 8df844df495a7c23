import { useSyncExternalStore } from "react";

const TICK_MS = 10_000;
let now = Date.now();
const watchers = new Set<() => void>();
let ticking: ReturnType<typeof setInterval> | undefined;

function watch(watcher: () => void): () => void {
  watchers.add(watcher);
  ticking ??= setInterval(() => {
    now = Date.now();
    for (const each of watchers) each();
  }, TICK_MS);
  return () => {
    watchers.delete(watcher);
    if (watchers.size > 0) return;
    clearInterval(ticking);
    ticking = undefined;
  };
}

/** Created once, because creating one per row takes longer than drawing the rows. */
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

/** A relative time in the past, with the exact time as a tooltip. */
export function Time({ at }: { at: string }) {
  const current = useSyncExternalStore(watch, () => now);
  const date = new Date(at);
  return (
    <time dateTime={at} title={exact.format(date)}>
      {ago(Math.max(0, Math.max(current, now) - date.getTime()))}
    </time>
  );
}

/** A relative time in the future, with the exact time as a tooltip. */
export function Until({ at }: { at: string }) {
  const current = useSyncExternalStore(watch, () => now);
  const date = new Date(at);
  const leftMs = date.getTime() - Math.max(current, now);
  return (
    <time dateTime={at} title={exact.format(date)}>
      {leftMs <= 0 ? "now" : `in ${duration(Math.max(1_000, Math.ceil(leftMs / 1_000) * 1_000))}`}
    </time>
  );
}

const steps = [
  [60, 1, "s"],
  [3_600, 60, "min"],
  [86_400, 3_600, "h"],
  [30 * 86_400, 86_400, "d"],
  [365 * 86_400, 30 * 86_400, "mo"],
] as const;

export function ago(ms: number): string {
  const seconds = ms / 1_000;
  if (seconds < 5) return "now";
  const [, size, unit] = steps.find(([below]) => seconds < below) ?? [0, 365 * 86_400, "y"];
  return `${Math.floor(seconds / size)} ${unit} ago`;
}

/** Formats the duration of work; a dash if it has not started. */
export function workedFor(ms: number): string {
  return ms === 0 ? "–" : duration(ms);
}

/** Formats a duration, such as `42 ms`, `3.1 s`, `2 min 4 s`, `1 h 12 min`, `30 min`. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1_000;
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return joinUnits([minutes, "min"], [Math.floor(seconds % 60), "s"]);
  return joinUnits([Math.floor(minutes / 60), "h"], [minutes % 60, "min"]);
}

function joinUnits([first, unit]: [number, string], [rest, smaller]: [number, string]): string {
  return rest === 0 ? `${first} ${unit}` : `${first} ${unit} ${rest} ${smaller}`;
}
