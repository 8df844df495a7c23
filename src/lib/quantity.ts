import { CaissonError } from "../contract/error.ts";

const byteUnits: Readonly<Record<string, number>> = { "": 1, b: 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30, t: 2 ** 40 };
const timeUnits: Readonly<Record<string, number>> = { ms: 1, "": 1000, s: 1000, m: 60_000, h: 3_600_000 };

/** `512m`, `4g`, `1.5GiB`, `1048576`. Throws `invalid`. */
export function parseBytes(option: string, text: string): number {
  const match = /^(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?$/i.exec(text);
  const unit = byteUnits[(match?.[2] ?? "?").toLowerCase()];
  return positive(option, text, Math.round(Number(match?.[1]) * (unit ?? Number.NaN)), "a size such as 512m or 4g");
}

/** `30s`, `5m`, `1.5h`, `250ms`; a bare number is seconds. Throws `invalid`. */
export function parseDuration(option: string, text: string): number {
  const match = /^(\d+(?:\.\d+)?)\s*(ms|s|m|h)?$/i.exec(text);
  const unit = timeUnits[(match?.[2] ?? "").toLowerCase()];
  return positive(option, text, Math.round(Number(match?.[1]) * (unit ?? Number.NaN)), "a duration such as 30s or 5m");
}

/** Throws `invalid` for anything but a whole number above 0. */
export function parseCount(option: string, text: string): number {
  return positive(option, text, /^\d+$/.test(text) ? Number(text) : Number.NaN, "a whole number such as 100");
}

/** Throws `invalid` for anything but a number above 0. */
export function parseNumber(option: string, text: string): number {
  return positive(option, text, /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN, "a number such as 1.5");
}

function positive(option: string, text: string, value: number, wanted: string): number {
  if (Number.isFinite(value) && value > 0 && value <= Number.MAX_SAFE_INTEGER) return value;
  throw new CaissonError("invalid", `--${option} ${JSON.stringify(text)} is not ${wanted}`, { hint: `Give --${option} ${wanted}.` });
}

/** Bytes as people read them. */
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

/** Milliseconds as people read them. */
export function showDuration(ms: number): string {
  if (ms < 1000) return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms % 1000 === 0 ? 0 : 1)} s`;
  if (ms < 3_600_000) return `${Math.round(ms / 60_000)} min`;
  return `${(ms / 3_600_000).toFixed(1)} h`;
}
