import { CaissonError } from "../../contract/error/error.ts";

/** How much may be sent before the other side acknowledges it. */
export interface Credit {
  /** Counts an amount as sent. */
  spend(amount: number): void;
  /** Resolves when anything more may be sent. Throws `cancelled` if the signal aborts. */
  room(): Promise<void>;
  /** Returns how much may be sent now. */
  remaining(): number;
  /** Takes the total amount acknowledged so far. */
  acknowledge(total: number): void;
}

/** Without a window there is no limit. */
export function createCredit(window: number | undefined, signal: AbortSignal): Credit {
  let sentTotal = 0;
  let acknowledged = 0;
  let waiting = Promise.withResolvers<void>();
  const remaining = () => (window === undefined ? Number.POSITIVE_INFINITY : window - (sentTotal - acknowledged));
  signal.addEventListener("abort", () => waiting.resolve(), { once: true });
  return {
    spend(amount) {
      sentTotal += amount;
    },
    async room() {
      while (remaining() < 1) {
        if (signal.aborted) throw new CaissonError("cancelled", "the stream has ended");
        waiting = Promise.withResolvers();
        await waiting.promise;
      }
    },
    remaining,
    acknowledge(total) {
      acknowledged = Math.min(Math.max(acknowledged, total), sentTotal);
      waiting.resolve();
    },
  };
}

/**
 * Yields the data in parts that fit the current credit, and spends it. Never waits until a large part fits: a reader
 * that acknowledges rarely may never leave that much room.
 */
export async function* partsWithin(
  data: Uint8Array,
  { credit, bytesMax }: { credit: Credit; bytesMax: number },
): AsyncGenerator<{ at: number; part: Uint8Array }> {
  for (let at = 0; at < data.length; ) {
    await credit.room();
    const part = data.subarray(at, at + Math.min(credit.remaining(), bytesMax));
    credit.spend(part.length);
    yield { at, part };
    at += part.length;
  }
}
