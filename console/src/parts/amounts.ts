/** Such as `840`, `12.4k`, `3.1M`. */
export function tokens(count: number): string {
  if (count < 1_000) return `${count}`;
  if (count < 1_000_000) return `${trimmed(count / 1_000)}k`;
  return `${trimmed(count / 1_000_000)}M`;
}

/** In dollars; a dash where the price of something is not known. */
export function cost(usd: number | null): string {
  if (usd === null) return "–";
  if (usd === 0) return "$0";
  if (usd < 0.01) return "<$0.01";
  return usd < 100 ? `$${usd.toFixed(2)}` : `$${Math.round(usd)}`;
}

/** Such as `512 B`, `1.4 MB`. */
export function bytes(count: number): string {
  const [size, unit] =
    count < 1_000 ? [count, "B"] : count < 1e6 ? [count / 1e3, "kB"] : count < 1e9 ? [count / 1e6, "MB"] : [count / 1e9, "GB"];
  return `${unit === "B" ? size : trimmed(size)} ${unit}`;
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

function trimmed(value: number): string {
  return value < 100 ? value.toFixed(1).replace(/\.0$/, "") : `${Math.round(value)}`;
}
