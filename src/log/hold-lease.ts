import { CaissonError } from "../contract/error.ts";
import type { Lease, Log } from "./log.ts";

/** Renewed so often that a few failures in a row lose nothing, and that whoever lost it knows soon. */
const RENEWALS_PER_TTL = 6;
const RENEW_MS_MAX = 15_000;

/**
 * How long the lease of a run, or of anything else that is driven, lives without being renewed: one whose owner died is
 * taken over at once when that can be seen, else after it.
 */
export const LEASE_TTL_MS = 15_000;

export interface HeldLease extends AsyncDisposable {
  readonly lease: Lease;
  /** Aborted, with `superseded` as its reason, once somebody else took it. */
  readonly lost: AbortSignal;
}

interface HoldOptions {
  owner: string;
  ttlMs: number;
  /** Whether an owner's process can never come back. */
  ownerGone: (owner: string) => boolean;
}

/**
 * Takes a lease and renews it until it is disposed of; null when another holds it. The only holder of leases: of runs,
 * sessions, mirrors and sweeps.
 *
 * It is given up for one reason, that another process has it. A renewal that fails because the log is busy or the disk
 * stands still says nothing about that; appends are fenced by the epoch in any case. A lease that ran out is not taken
 * at once either unless its owner is gone: whatever kept the owner from renewing may have kept us waiting as well, so
 * it gets the time of one more renewal to show that it works.
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
      await log.release(lease).catch(() => undefined);
    },
  };
}

/** Whether the owner of a lease that ran out renews it after all. */
async function comesBack(log: Log, stream: string, options: HoldOptions & { waitMs: number }): Promise<boolean> {
  const [last, current] = await Promise.all([log.lastLease(stream), log.holder(stream)]);
  if (last === null || current !== null || last.owner === options.owner || options.ownerGone(last.owner)) return false;
  await new Promise((resolve) => setTimeout(resolve, options.waitMs));
  return (await log.holder(stream)) !== null;
}
