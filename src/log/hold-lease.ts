import { CaissonError } from "../contract/error/error.ts";
import { ignore } from "../lib/failures.ts";
import type { Lease, Log } from "./log.ts";

/**
 * Frequent enough that a few failed renewals in a row do not lose the lease, and that a former holder soon notices its
 * loss.
 */
const RENEWALS_PER_TTL = 6;
const RENEW_MS_MAX = 15_000;

/**
 * How long the lease of a run or durable job lives without renewal. If its holder is known to be dead, another process
 * takes it over immediately; otherwise after this time.
 */
export const LEASE_TTL_MS = 15_000;

export interface HeldLease extends AsyncDisposable {
  readonly lease: Lease;
  /** Aborted with `superseded` as the reason when another process takes the lease. */
  readonly lost: AbortSignal;
}

interface HoldOptions {
  holder: string;
  ttlMs: number;
  /** Returns whether a holder's process is known to be dead. */
  holderGone: (holder: string) => boolean;
}

/**
 * Takes a lease and renews it until it is disposed of. Returns null if another process holds it. All leases are held
 * with this function: those of runs, durable jobs, sessions, names, mirrors and sweeps.
 *
 * We give up a lease only if another process has it. A renewal that fails because the log is busy or the disk stalls
 * does not mean that, and the epoch fences appends in any case. We take an expired lease immediately only if its holder
 * is dead. Otherwise the cause that kept the holder from renewing may have delayed us as well, so the holder gets the
 * time of one more renewal to prove that it is alive.
 */
export async function holdLease(log: Log, stream: string, options: HoldOptions): Promise<HeldLease | null> {
  const renewMs = Math.min(options.ttlMs / RENEWALS_PER_TTL, RENEW_MS_MAX);
  if (await comesBack(log, stream, { ...options, waitMs: 1.5 * renewMs })) return null;
  const first = await log.acquire(stream, options);
  if (!first) return null;
  let lease = first;
  let renewing = false;
  const lost = new AbortController();
  const renew = async () => {
    if (renewing) return;
    renewing = true;
    try {
      lease = await log.renew(lease, { ttlMs: options.ttlMs });
    } catch (error) {
      if (error instanceof CaissonError && error.code === "superseded") lost.abort(error);
    } finally {
      renewing = false;
    }
  };
  const timer = setInterval(() => void renew(), renewMs);
  timer.unref();
  return {
    get lease() {
      return lease;
    },
    lost: lost.signal,
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      await ignore(log.release(lease), "the lease expires anyway");
    },
  };
}

/** Waits a moment and returns whether the holder of an expired lease has renewed it. */
async function comesBack(log: Log, stream: string, options: HoldOptions & { waitMs: number }): Promise<boolean> {
  const [last, current] = await Promise.all([log.lastLease(stream), log.holder(stream)]);
  if (last === null || current !== null || last.holder === options.holder || options.holderGone(last.holder)) return false;
  await new Promise((resolve) => setTimeout(resolve, options.waitMs));
  return (await log.holder(stream)) !== null;
}
