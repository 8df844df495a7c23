import { CaissonError } from "../../contract/error/error.ts";

/** The deadline of a call. Whichever side gives up first, the signal fires with the reason. */
export interface CallDeadline extends Disposable {
  readonly signal: AbortSignal;
  abort(reason: CaissonError): void;
  /** Starts a timer of this length, replacing the previous one. `text` is the error message when it expires. */
  start(timeoutMs: number, text: string): void;
  /** Restarts the current timer, because data moved. */
  extend(): void;
  /** Stops the timer while something else limits the wait. */
  suspend(): void;
}

export function createCallDeadline(options: { inAllMs: number }): CallDeadline {
  const controller = new AbortController();
  const abort = (reason: CaissonError) => controller.abort(reason);
  const inAll = setTimeout(
    () => abort(new CaissonError("timeout", `the call took longer than ${options.inAllMs / 1000} s`)),
    options.inAllMs,
  );
  let timer: NodeJS.Timeout | undefined;
  const suspend = () => {
    clearTimeout(timer);
    timer = undefined;
  };
  return {
    signal: controller.signal,
    abort,
    start(timeoutMs, text) {
      suspend();
      timer = setTimeout(() => abort(new CaissonError("timeout", text)), timeoutMs);
    },
    extend: () => void timer?.refresh(),
    suspend,
    [Symbol.dispose]() {
      suspend();
      clearTimeout(inAll);
    },
  };
}

/** Settles like the promise, or rejects with the signal's reason if that comes first. */
export function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}
