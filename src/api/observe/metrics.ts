/** Figures as Prometheus reads them, in its text format 0.0.4. */

export type Labels = Readonly<Record<string, string>>;

interface Sample {
  /** Of a histogram: `_bucket`, `_sum`, `_count`. */
  suffix?: string;
  labels: Labels;
  value: number;
}

export interface Family {
  name: string;
  help: string;
  type: "counter" | "gauge" | "histogram";
  samples: readonly Sample[];
}

export const METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/**
 * Combinations of labels that one family may have: nothing that a caller says makes a new one, but a mistake of ours
 * could.
 */
const SERIES_MAX = 1000;

export function metricsText(families: readonly Family[]): string {
  return families
    .map(({ name, help, type, samples }) => {
      const lines = samples.map(({ suffix = "", labels, value }) => `${name}${suffix}${labelsText(labels)} ${numberText(value)}\n`);
      return `# HELP ${name} ${escapedHelp(help)}\n# TYPE ${name} ${type}\n${lines.join("")}`;
    })
    .join("");
}

function labelsText(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escapedValue(value)}"`);
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

const escapedHelp = (text: string) => text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
const escapedValue = (text: string) => escapedHelp(text).replaceAll('"', '\\"');

function numberText(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "+Inf" : "-Inf";
  return String(value);
}

/** One figure without labels, or one for each value of a label. */
export function gauge(name: string, help: string, values: number | readonly { labels: Labels; value: number }[]): Family {
  const samples = typeof values === "number" ? [{ labels: {}, value: values }] : values;
  return { name, help, type: "gauge", samples };
}

export interface Counter {
  add(labels: Labels, value?: number): void;
  family(): Family;
}

export function createCounter(name: string, help: string): Counter {
  const series = new Map<string, { labels: Labels; value: number }>();
  return {
    add(labels, value = 1) {
      const found = seriesOf(series, labels, () => ({ labels, value: 0 }));
      if (found !== null) found.value += value;
    },
    family: () => ({ name, help, type: "counter", samples: [...series.values()] }),
  };
}

export interface Histogram {
  observe(labels: Labels, value: number): void;
  family(): Family;
}

export function createHistogram(name: string, help: string, bounds: readonly number[]): Histogram {
  interface Series {
    labels: Labels;
    buckets: number[];
    sum: number;
    count: number;
  }
  const series = new Map<string, Series>();
  const samplesOf = ({ labels, buckets, sum, count }: Series): Sample[] => {
    let below = 0;
    const cumulative = bounds.map((bound, index) => {
      below += buckets[index] ?? 0;
      return { suffix: "_bucket", labels: { ...labels, le: String(bound) }, value: below };
    });
    return [
      ...cumulative,
      { suffix: "_bucket", labels: { ...labels, le: "+Inf" }, value: count },
      { suffix: "_sum", labels, value: sum },
      { suffix: "_count", labels, value: count },
    ];
  };
  return {
    observe(labels, value) {
      const found = seriesOf(series, labels, () => ({ labels, buckets: bounds.map(() => 0), sum: 0, count: 0 }));
      if (found === null) return;
      found.sum += value;
      found.count += 1;
      const index = bounds.findIndex((bound) => value <= bound);
      if (index >= 0) found.buckets[index] = (found.buckets[index] ?? 0) + 1;
    },
    family: () => ({ name, help, type: "histogram", samples: [...series.values()].flatMap(samplesOf) }),
  };
}

function seriesOf<Series>(all: Map<string, Series>, labels: Labels, make: () => Series): Series | null {
  const key = JSON.stringify(labels);
  const found = all.get(key);
  if (found !== undefined) return found;
  if (all.size >= SERIES_MAX) return null;
  const made = make();
  all.set(key, made);
  return made;
}
