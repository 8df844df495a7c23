export interface ParsedFamily {
  type: string;
  help: string;
  samples: { name: string; labels: Record<string, string>; value: number }[];
}

const NAME = "[a-zA-Z_:][a-zA-Z0-9_:]*";

/**
 * Parses the Prometheus text format strictly. Throws for a sample without a type, a family in two places, a duplicate
 * sample, or a histogram whose buckets do not add up.
 */
export function parseMetrics(text: string): Map<string, ParsedFamily> {
  const families = new Map<string, ParsedFamily>();
  if (!text.endsWith("\n")) throw new Error("no line break at the end");
  const seen = new Set<string>();
  let current: { name: string; family: ParsedFamily } | null = null;
  let help: { name: string; text: string } | null = null;
  for (const line of text.slice(0, -1).split("\n")) {
    const [, kind, name = "", rest = ""] = new RegExp(`^# (HELP|TYPE) (${NAME}) (.*)$`).exec(line) ?? [];
    if (kind === "HELP") {
      help = { name, text: rest };
      continue;
    }
    if (kind === "TYPE") {
      if (help?.name !== name) throw new Error(`${name} has no help before its type`);
      if (families.has(name)) throw new Error(`${name} is in two places`);
      if (!["counter", "gauge", "histogram"].includes(rest)) throw new Error(`${name} is a ${rest}`);
      if (rest === "counter" && !name.endsWith("_total")) throw new Error(`the counter ${name} does not end in _total`);
      current = { name, family: { type: rest, help: help.text, samples: [] } };
      families.set(name, current.family);
      continue;
    }
    const sample = parseSample(line);
    if (current === null) throw new Error(`${line} has no type`);
    const suffixes = current.family.type === "histogram" ? ["_bucket", "_sum", "_count"] : [""];
    if (!suffixes.some((suffix) => sample.name === `${current?.name}${suffix}`)) throw new Error(`${line} is not of ${current.name}`);
    const key = `${sample.name}${JSON.stringify(Object.entries(sample.labels).sort())}`;
    if (seen.has(key)) throw new Error(`${line} occurs twice`);
    seen.add(key);
    if (current.family.type !== "gauge" && sample.value < 0) throw new Error(`${line} is below 0`);
    current.family.samples.push(sample);
  }
  for (const [name, family] of families) if (family.type === "histogram") checkHistogram(name, family);
  return families;
}

function parseSample(line: string): ParsedFamily["samples"][number] {
  const match = new RegExp(`^(${NAME})(?:\\{(.*)\\})? (\\+Inf|-Inf|NaN|-?[0-9.]+(?:e[+-]?[0-9]+)?)$`).exec(line);
  if (match === null) throw new Error(`${JSON.stringify(line)} is not a sample`);
  const [, name = "", labels = "", value = ""] = match;
  const parsed: Record<string, string> = {};
  let rest = labels;
  while (rest !== "") {
    const label = /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\n"])*)"(?:,|$)/.exec(rest);
    if (label === null) throw new Error(`${JSON.stringify(rest)} is not a label`);
    if (parsed[label[1] as string] !== undefined) throw new Error(`the label ${label[1]} occurs twice`);
    parsed[label[1] as string] = (label[2] as string).replaceAll(/\\(.)/g, (_, character) => (character === "n" ? "\n" : character));
    rest = rest.slice(label[0].length);
  }
  return { name, labels: parsed, value: value === "+Inf" ? Number.POSITIVE_INFINITY : Number(value) };
}

function checkHistogram(name: string, { samples }: ParsedFamily): void {
  const series = Map.groupBy(samples, ({ labels: { le: _bound, ...labels } }) => JSON.stringify(labels));
  for (const [labels, all] of series) {
    const buckets = all.filter((sample) => sample.name === `${name}_bucket`);
    const bounds = buckets.map(({ labels: { le = "" } }) => (le === "+Inf" ? Number.POSITIVE_INFINITY : Number(le)));
    const grows = (values: readonly number[]) => values.every((value, index) => index === 0 || value >= (values[index - 1] as number));
    if (bounds.at(-1) !== Number.POSITIVE_INFINITY || !grows(bounds)) throw new Error(`${name}${labels} has bounds ${bounds}`);
    if (!grows(buckets.map(({ value }) => value))) throw new Error(`${name}${labels} does not add up`);
    const count = all.find((sample) => sample.name === `${name}_count`)?.value;
    if (count !== buckets.at(-1)?.value) throw new Error(`${name}${labels} has ${count} and ${buckets.at(-1)?.value}`);
  }
}
