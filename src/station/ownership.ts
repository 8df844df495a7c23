import { CaissonError } from "../contract/error.ts";
import type { Lease, Log } from "../log/log.ts";
import { runStream } from "./journal.ts";

/** A run's lease lives this long without being renewed; a run whose owner died can be taken over at once when that can be seen, else after it. */
const LEASE_TTL_MS = 15_000;
const LEASE_RENEW_MS = 5000;

/** A process, so that others can tell whether it still lives. */
export interface Identity {
  pid: number;
  host: string;
  startTicks: number;
  bootId: string;
}

interface Owning {
  log: Log;
  /** This process, as the holder of a lease. */
  owner: string;
  identity: Identity;
  alive: (owner: { pid: number; startTicks: number; bootId: string }) => boolean;
}

/** Becomes the run's owner, and stays it while this is held. Throws `conflict` when another process has it. */
export async function takeOver(run: string, options: Owning): Promise<{ lease: () => Lease; fencedOut: AbortSignal } & AsyncDisposable> {
  const stream = runStream(run);
  const first = await options.log.acquire(stream, {
    owner: options.owner,
    ttlMs: LEASE_TTL_MS,
    ownerGone: (other) => isGone(options, other),
  });
  if (!first) {
    const holder = await options.log.holder(stream);
    throw new CaissonError("conflict", `The run ${run} is driven by another process (${holder?.owner ?? "unknown"}).`, {
      hint: `Watch it with \`caisson attach ${run}\`.`,
    });
  }
  let lease = first;
  const fenced = new AbortController();
  const timer = setInterval(() => {
    options.log.renew(lease, { ttlMs: LEASE_TTL_MS }).then(
      (renewed) => {
        lease = renewed;
      },
      () => fenced.abort(),
    );
  }, LEASE_RENEW_MS);
  return {
    lease: () => lease,
    fencedOut: fenced.signal,
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      await options.log.release(lease).catch(() => undefined);
    },
  };
}

/** Whether the process that a lease names can never come back. Of another machine's that cannot be seen from here. */
export function isGone(options: Pick<Owning, "identity" | "alive">, owner: string): boolean {
  try {
    const other = JSON.parse(owner) as Identity;
    return other.host === options.identity.host && !options.alive(other);
  } catch {
    return false;
  }
}
