import type { Duplex } from "node:stream";
import { sendPromptly } from "./reset-stream.ts";

/** The current user of an upstream connection. */
export interface UpstreamUser {
  onUpstreamData(chunk: Buffer): void;
  /** Called when the upstream has ended its side cleanly. */
  onUpstreamEnd(): void;
  /** Called when the connection has closed. Without an end before, it broke. */
  onUpstreamClose(): void;
  onUpstreamDrain(): void;
}

/**
 * One connection to an upstream. Its listeners stay while its users change, because adding and removing them for each
 * request costs more than the rest of it.
 */
export class Upstream {
  readonly stream: Duplex;
  readonly key: string;
  user: UpstreamUser | null = null;
  /** Called when something happens without a user. */
  onUnexpected: ((upstream: Upstream) => void) | null = null;
  idleSinceMs = 0;
  idleUntilMs = 0;
  /** The error that broke the connection, or null. */
  error: Error | null = null;
  #ended = false;
  readonly #listeners: readonly (readonly [string, (...args: never[]) => void])[];

  constructor(stream: Duplex, key: string) {
    this.stream = stream;
    this.key = key;
    this.#listeners = [
      ["data", (chunk: Buffer) => (this.user === null ? this.#dropUnexpected() : this.user.onUpstreamData(chunk))],
      ["end", () => this.#onEnd()],
      ["close", () => (this.user === null ? this.#dropUnexpected() : this.user.onUpstreamClose())],
      ["drain", () => this.user?.onUpstreamDrain()],
    ];
    sendPromptly(stream);
    stream.on("error", (error) => {
      this.error ??= error;
    });
    for (const [name, listener] of this.#listeners) stream.on(name, listener as (...args: unknown[]) => void);
    // The connecting code may have waited for the first bytes and paused the stream.
    stream.resume();
  }

  /** Whether another request can be sent on it. */
  get usable(): boolean {
    return !this.#ended && !this.stream.destroyed && this.stream.writable;
  }

  destroy(): void {
    this.user = null;
    this.onUnexpected = null;
    this.stream.destroy();
  }

  /** Hands over the bare stream, paused. Only its error listener stays. */
  release(): Duplex {
    this.user = null;
    this.onUnexpected = null;
    this.stream.pause();
    for (const [name, listener] of this.#listeners) this.stream.off(name, listener as (...args: unknown[]) => void);
    return this.stream;
  }

  #onEnd(): void {
    this.#ended = true;
    if (this.user === null) this.#dropUnexpected();
    else this.user.onUpstreamEnd();
  }

  #dropUnexpected(): void {
    this.onUnexpected?.(this);
    this.stream.destroy();
  }
}
