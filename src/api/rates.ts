interface Bucket {
  left: number;
  at: number;
}

export interface Rates {
  /** Counts one more if there is room. Otherwise, returns the seconds after which there is room again. */
  take(key: string): { ok: true } | { ok: false; retryAfterSeconds: number };
}

/**
 * Limits each key to a rate per minute, with bursts of at most `burst`. If there are too many keys, forgets those that
 * were unused the longest.
 */
export function createRates(options: { perMinute: number; burst?: number; keysMax?: number; now?: () => number }): Rates {
  const { perMinute, burst = perMinute, keysMax = 10_000, now = () => performance.now() } = options;
  const perMs = perMinute / 60_000;
  const buckets = new Map<string, Bucket>();
  return {
    take(key) {
      const at = now();
      const known = buckets.get(key);
      const left = known === undefined ? burst : Math.min(burst, known.left + (at - known.at) * perMs);
      buckets.delete(key);
      if (buckets.size >= keysMax) buckets.delete(buckets.keys().next().value as string);
      buckets.set(key, { left: left >= 1 ? left - 1 : left, at });
      return left >= 1 ? { ok: true } : { ok: false, retryAfterSeconds: Math.ceil((1 - left) / perMs / 1000) };
    },
  };
}
