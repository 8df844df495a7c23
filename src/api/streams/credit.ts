import { CaissonError } from "../../contract/error.ts";

/** What may be sent before the other side has said that it took it. */
export interface Credit {
  /**
   * Resolves when so much more may be sent; of what is larger than the whole window, when nothing else is on its way.
   * Throws `cancelled` with the signal.
   */
  spend(amount: number): Promise<void>;
  /** Resolves when anything more may be sent. Throws as `spend` does. */
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
  const until = async (least: number) => {
    while (left() < least) {
      if (signal.aborted) throw new CaissonError("cancelled", "the stream has ended");
      waiting = Promise.withResolvers();
      await waiting.promise;
    }
  };
  return {
    async spend(amount) {
      await until(Math.min(amount, window ?? amount));
      sent += amount;
    },
    room: () => until(1),
    left,
    taken(total) {
      taken = Math.min(Math.max(taken, total), sent);
      waiting.resolve();
    },
  };
}
