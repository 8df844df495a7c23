/** Formats a count of tokens, such as `840`, `12.4k`, `3.1M`. */
export function tokens(count: number): string {
  if (count < 1_000) return `${count}`;
  if (count < 1_000_000) return `${formatShort(count / 1_000)}k`;
  return `${formatShort(count / 1_000_000)}M`;
}

/** Formats a cost in dollars; a dash if a price is unknown. */
export function cost(usd: number | null): string {
  if (usd === null) return "–";
  if (usd === 0) return "$0";
  if (usd < 0.01) return "<$0.01";
  return usd < 100 ? `$${usd.toFixed(2)}` : `$${Math.round(usd)}`;
}

const byteUnits = ["B", "KiB", "MiB", "GiB", "TiB"] as const;

/** Formats a size, such as `812 B`, `4.2 KiB`, `1.5 GiB`. */
export function bytes(count: number): string {
  let value = count;
  let unit = 0;
  while (value >= 1024 && unit < byteUnits.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? Math.round(value) : formatShort(value)} ${byteUnits[unit]}`;
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

function formatShort(value: number): string {
  return value < 100 ? value.toFixed(1).replace(/\.0$/, "") : `${Math.round(value)}`;
}
