/** Metrics in the Prometheus text format 0.0.4. */

export type Labels = Readonly<Record<string, string>>;

interface Sample {
  /** For histograms: `_bucket`, `_sum` or `_count`. */
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

/** The most label combinations of one family. Callers cannot create new ones, but a mistake of ours could. */
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

/** Creates a metric without labels, or with one value for each label. */
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
      const entry = seriesOf(series, labels, () => ({ labels, value: 0 }));
      if (entry !== null) entry.value += value;
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
      const entry = seriesOf(series, labels, () => ({ labels, buckets: bounds.map(() => 0), sum: 0, count: 0 }));
      if (entry === null) return;
      entry.sum += value;
      entry.count += 1;
      const index = bounds.findIndex((bound) => value <= bound);
      if (index >= 0) entry.buckets[index] = (entry.buckets[index] ?? 0) + 1;
    },
    family: () => ({ name, help, type: "histogram", samples: [...series.values()].flatMap(samplesOf) }),
  };
}

function seriesOf<Series>(all: Map<string, Series>, labels: Labels, make: () => Series): Series | null {
  const key = JSON.stringify(labels);
  const known = all.get(key);
  if (known !== undefined) return known;
  if (all.size >= SERIES_MAX) return null;
  const entry = make();
  all.set(key, entry);
  return entry;
}
