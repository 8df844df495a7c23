/** One line of the table: our figure, or that of what a user would use instead, measured in the same run. */
export interface Row {
  group: string;
  name: string;
  value: number;
  unit: "ms" | "MB/s" | "MiB" | "kB" | "per s" | "left" | "%";
  p95?: number;
  n: number;
  note?: string;
}

/** A ratio that the product promises. `held` is computed, never typed in. */
export interface Target {
  name: string;
  measured: number;
  unit: "×" | "MB/s" | "MiB" | "kB" | "ms" | "per s" | "left" | "%";
  atLeast?: number;
  atMost?: number;
}

export interface Figures {
  rows: Row[];
  targets: Target[];
}

export interface BenchReport {
  at: string;
  machine: { cores: number; memoryGiB: number; kernel: string; arch: string; node: string };
  versions: Record<string, string>;
  rows: Row[];
  targets: Target[];
}

export function held(target: Target): boolean {
  if (Number.isNaN(target.measured)) return false;
  return target.measured >= (target.atLeast ?? Number.NEGATIVE_INFINITY) && target.measured <= (target.atMost ?? Number.POSITIVE_INFINITY);
}

export function printReport(report: BenchReport): string {
  return [tableOfRows(report.rows), "", tableOfTargets(report.targets)].join("\n");
}

function tableOfRows(rows: readonly Row[]): string {
  const lines = ["| what | how | median | p95 | n | |", "|---|---|---:|---:|---:|---|"];
  let group = "";
  for (const row of rows) {
    const p95 = row.p95 === undefined ? "" : format(row.p95);
    lines.push(
      `| ${row.group === group ? "" : row.group} | ${row.name} | ${format(row.value)} ${row.unit} | ${p95} | ${row.n} | ${row.note ?? ""} |`,
    );
    group = row.group;
  }
  return lines.join("\n");
}

function tableOfTargets(targets: readonly Target[]): string {
  const lines = ["| promise | measured | bound | held |", "|---|---:|---:|---|"];
  for (const target of targets) {
    const bound = target.atLeast === undefined ? `≤ ${target.atMost}` : `≥ ${target.atLeast}`;
    lines.push(
      `| ${target.name} | ${format(target.measured)} ${target.unit} | ${bound} ${target.unit} | ${held(target) ? "yes" : "**no**"} |`,
    );
  }
  return lines.join("\n");
}

function format(value: number): string {
  if (!Number.isFinite(value)) return "–";
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}
