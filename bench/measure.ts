/** Figures of one operation that was measured several times. */
export interface Sample {
  p50: number;
  p95: number;
  p99: number;
  n: number;
}

/** Times `once` in milliseconds, `n` times after `warmup` rounds that do not count. */
export async function timeEach(options: { n: number; warmup?: number; once: (index: number) => Promise<unknown> }): Promise<Sample> {
  for (let index = 0; index < (options.warmup ?? 1); index++) await options.once(-1 - index);
  const times: number[] = [];
  for (let index = 0; index < options.n; index++) {
    const start = performance.now();
    await options.once(index);
    times.push(performance.now() - start);
  }
  return summarise(times);
}

/** Times several operations that are compared, and take turns. `before` runs ahead of each, untimed. */
export async function timeTogether<Name extends string>(options: {
  n: number;
  warmup: number;
  each: Record<Name, () => Promise<unknown>>;
  before?: () => Promise<unknown>;
}): Promise<Record<Name, Sample>> {
  const names = Object.keys(options.each) as Name[];
  const times = Object.fromEntries(names.map((name) => [name, [] as number[]])) as Record<Name, number[]>;
  for (let round = -options.warmup; round < options.n; round++) {
    for (const name of names) {
      await options.before?.();
      const start = performance.now();
      await options.each[name]();
      if (round >= 0) times[name].push(performance.now() - start);
    }
  }
  return Object.fromEntries(names.map((name) => [name, summarise(times[name])])) as Record<Name, Sample>;
}

export function summarise(values: readonly number[]): Sample {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (fraction: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * fraction))] ?? Number.NaN;
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99), n: sorted.length };
}
