import { CaissonError } from "../../contract/error.ts";

/** What may be sent before the other side has said that it took it. */
export interface Credit {
  /** So much is sent now. */
  spend(amount: number): void;
  /** Resolves when anything more may be sent. Throws `cancelled` with the signal. */
  room(): Promise<void>;
  /** How much may be sent now. */
  left(): number;
  /** All together. */
  taken(total: number): void;
}

/** Without a window there is no bound. */
export function createCredit(window: number | undefined, signal: AbortSignal): Credit {
  let sent = 0;
  let taken = 0;
  let waiting = Promise.withResolvers<void>();
  const left = () => (window === undefined ? Number.POSITIVE_INFINITY : window - (sent - taken));
  signal.addEventListener("abort", () => waiting.resolve(), { once: true });
  return {
    spend(amount) {
      sent += amount;
    },
    async room() {
      while (left() < 1) {
        if (signal.aborted) throw new CaissonError("cancelled", "the stream has ended");
        waiting = Promise.withResolvers();
        await waiting.promise;
      }
    },
    left,
    taken(total) {
      taken = Math.min(Math.max(taken, total), sent);
      waiting.resolve();
    },
  };
}

/**
 * The data in parts, each as large as may be sent when it is given out, and spent with that. Never waits for room for
 * a whole part: a reader who says what it took only now and then may never leave that much.
 */
export async function* partsWithin(
  data: Uint8Array,
  { credit, bytesMax }: { credit: Credit; bytesMax: number },
): AsyncGenerator<{ at: number; part: Uint8Array }> {
  for (let at = 0; at < data.length; ) {
    await credit.room();
    const part = data.subarray(at, at + Math.min(credit.left(), bytesMax));
    credit.spend(part.length);
    yield { at, part };
    at += part.length;
  }
}
