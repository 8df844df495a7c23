const byteUnits: Readonly<Record<string, number>> = { "": 1, b: 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30, t: 2 ** 40 };
const timeUnits: Readonly<Record<string, number>> = { ms: 1, "": 1000, s: 1000, m: 60_000, h: 3_600_000 };

/** Parses `512m`, `4g`, `1.5GiB` or `1048576` as bytes. Returns null for anything else. */
export function bytesFrom(text: string): number | null {
  const match = /^(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?$/i.exec(text);
  const unit = byteUnits[(match?.[2] ?? "?").toLowerCase()];
  return positive(Math.round(Number(match?.[1]) * (unit ?? Number.NaN)));
}

/** Parses `30s`, `5m`, `1.5h` or `250ms` as milliseconds; a bare number is seconds. Returns null for anything else. */
export function durationFrom(text: string): number | null {
  const match = /^(\d+(?:\.\d+)?)\s*(ms|s|m|h)?$/i.exec(text);
  const unit = timeUnits[(match?.[2] ?? "").toLowerCase()];
  return positive(Math.round(Number(match?.[1]) * (unit ?? Number.NaN)));
}

/** Parses a whole number above 0. Returns null for anything else. */
export function countFrom(text: string): number | null {
  return /^\d+$/.test(text) ? positive(Number(text)) : null;
}

/** Parses a number above 0. Returns null for anything else. */
export function numberFrom(text: string): number | null {
  return /^\d+(\.\d+)?$/.test(text) ? positive(Number(text)) : null;
}

function positive(value: number): number | null {
  return Number.isFinite(value) && value > 0 && value <= Number.MAX_SAFE_INTEGER ? value : null;
}

/** Formats bytes for people. */
export function showBytes(bytes: number | null): string {
  if (bytes === null) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let index = 0;
  let value = bytes;
  while (value >= 1024 && index < units.length - 1) {
    value /= 1024;
    index++;
  }
  return `${value >= 100 || index === 0 ? Math.round(value) : value.toFixed(1)} ${units[index]}`;
}

/** Formats milliseconds for people. */
export function showDuration(ms: number): string {
  if (ms < 1000) return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(ms % 1000 === 0 ? 0 : 1)} s`;
  if (ms < 3_599_500) return twoUnits(Math.round(ms / 1000), { major: "min", minor: "s" });
  return twoUnits(Math.round(ms / 60_000), { major: "h", minor: "min" });
}

function twoUnits(minors: number, { major, minor }: { major: string; minor: string }): string {
  const rest = minors % 60;
  return `${Math.floor(minors / 60)} ${major}${rest === 0 ? "" : ` ${rest} ${minor}`}`;
}
