const units = ["B", "KiB", "MiB", "GiB", "TiB"] as const;

/** Such as `512 B`, `1.4 MiB`, `23 GiB`. */
export function bytes(count: number): string {
  const power = Math.min(units.length - 1, count < 1 ? 0 : Math.floor(Math.log2(count) / 10));
  const value = count / 1024 ** power;
  return `${power === 0 || value >= 10 ? Math.round(value) : value.toFixed(1)} ${units[power]}`;
}
