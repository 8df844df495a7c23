import type { Lease, Log } from "../log/log.ts";

/** Renewed so often that a few failures in a row lose nothing, and that whoever lost it knows soon. */
const RENEWALS_PER_TTL = 6;
const RENEW_MS_MAX = 15_000;

export interface HeldLease extends AsyncDisposable {
  readonly lease: Lease;
  /** Aborted once somebody else took it, or could have. */
  readonly lost: AbortSignal;
}

/** Takes a lease and renews it until it is disposed of; null when another holds it. */
export async function holdLease(
  log: Log,
  stream: string,
  options: { owner: string; ttlMs: number; ownerGone: (owner: string) => boolean },
): Promise<HeldLease | null> {
  const first = await log.acquire(stream, options);
  if (!first) return null;
  let lease = first;
  const lost = new AbortController();
  const renew = async () => {
    try {
      lease = await log.renew(lease, { ttlMs: options.ttlMs });
    } catch (error) {
      const taken = (error as { code?: string }).code === "denied";
      if (taken || Date.now() >= lease.expiresAtMs) lost.abort(error);
    }
  };
  const timer = setInterval(() => void renew(), Math.min(options.ttlMs / RENEWALS_PER_TTL, RENEW_MS_MAX));
  timer.unref();
  return {
    get lease() {
      return lease;
    },
    lost: lost.signal,
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      await log.release(lease).catch(() => undefined);
    },
  };
}
