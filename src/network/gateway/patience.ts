import { CaissonError } from "../../contract/error.ts";

/** The end of a call's patience: whoever gives up first, the signal fires with the reason. */
export interface Patience extends Disposable {
  readonly signal: AbortSignal;
  giveUp(reason: CaissonError): void;
  /** From now on, this long; the time before is over. */
  wait(timeoutMs: number, text: string): void;
  /** The same once more. */
  again(): void;
  /** Waits without a bound of its own, for what has another. */
  rest(): void;
}

export function createPatience(options: { inAllMs: number }): Patience {
  const controller = new AbortController();
  const giveUp = (reason: CaissonError) => controller.abort(reason);
  const inAll = setTimeout(
    () => giveUp(new CaissonError("timeout", `The call took longer than ${options.inAllMs / 1000} s.`)),
    options.inAllMs,
  );
  let timer: NodeJS.Timeout | undefined;
  const rest = () => {
    clearTimeout(timer);
    timer = undefined;
  };
  return {
    signal: controller.signal,
    giveUp,
    wait(timeoutMs, text) {
      rest();
      timer = setTimeout(() => giveUp(new CaissonError("timeout", text)), timeoutMs);
    },
    again: () => void timer?.refresh(),
    rest,
    [Symbol.dispose]() {
      rest();
      clearTimeout(inAll);
    },
  };
}

/** The promise's value, or the signal's reason when that comes first. */
export function orGivenUp<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}
