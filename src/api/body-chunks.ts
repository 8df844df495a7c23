import type { IncomingMessage } from "node:http";

/**
 * Yields a request body in the pieces in which it arrived. A stream's own iterator would join the pieces, which copies
 * everything. Stops reading at the high-water mark until the consumer asks for more. Ending the iteration does not
 * close the connection, which still carries the answer. Throws the error that broke the connection.
 */
export function bodyChunks(incoming: IncomingMessage): AsyncIterable<Uint8Array> {
  return { [Symbol.asyncIterator]: () => new BodyChunks(incoming) };
}

type Next = IteratorResult<Uint8Array, undefined>;
const done: Next = { done: true, value: undefined };

class BodyChunks implements AsyncIterator<Uint8Array, undefined> {
  readonly #incoming: IncomingMessage;
  #queue: Uint8Array[] = [];
  #queuedBytes = 0;
  #isOver = false;
  #failure: Error | null = null;
  #waiting: PromiseWithResolvers<Next> | null = null;

  constructor(incoming: IncomingMessage) {
    this.#incoming = incoming;
    if (incoming.destroyed && !incoming.readableEnded) this.#failure = incoming.errored ?? brokenOff();
    incoming.on("data", this.#onData).once("end", this.#onEnd).once("error", this.#onBroken).once("close", this.#onBroken);
  }

  next(): Promise<Next> {
    const value = this.#queue.shift();
    if (value !== undefined) {
      this.#queuedBytes -= value.length;
      this.#flow();
      return Promise.resolve({ done: false, value });
    }
    if (this.#failure !== null) return Promise.reject(this.#failure);
    if (this.#isOver) return Promise.resolve(done);
    this.#waiting ??= Promise.withResolvers<Next>();
    this.#incoming.resume();
    return this.#waiting.promise;
  }

  async return(): Promise<Next> {
    this.#stop();
    this.#isOver = true;
    this.#queue = [];
    this.#settle(({ resolve }) => resolve(done));
    return done;
  }

  readonly #onData = (chunk: Uint8Array) => {
    if (this.#waiting !== null) return this.#settle(({ resolve }) => resolve({ done: false, value: chunk }));
    this.#queue.push(chunk);
    this.#queuedBytes += chunk.length;
    this.#flow();
  };

  readonly #onEnd = () => {
    this.#stop();
    this.#isOver = true;
    this.#settle(({ resolve }) => resolve(done));
  };

  readonly #onBroken = (error?: Error) => {
    this.#stop();
    if (this.#isOver) return;
    this.#failure ??= error ?? brokenOff();
    this.#settle(({ reject }) => reject(this.#failure));
  };

  #settle(how: (waiting: PromiseWithResolvers<Next>) => void): void {
    const waiting = this.#waiting;
    this.#waiting = null;
    if (waiting !== null) how(waiting);
  }

  #flow(): void {
    if (this.#queuedBytes >= this.#incoming.readableHighWaterMark) this.#incoming.pause();
    else if (!this.#isOver && this.#failure === null) this.#incoming.resume();
  }

  /** Leaves the rest of an unwanted body unread. */
  #stop(): void {
    const incoming = this.#incoming;
    incoming.off("data", this.#onData).off("end", this.#onEnd).off("error", this.#onBroken).off("close", this.#onBroken).pause();
  }
}

function brokenOff(): Error {
  return Object.assign(new Error("the connection was closed"), { code: "ECONNRESET" });
}
