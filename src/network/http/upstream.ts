import type { Duplex } from "node:stream";
import { sendPromptly } from "./reset-stream.ts";

/** Who uses an upstream connection now. */
export interface UpstreamUser {
  onUpstreamData(chunk: Buffer): void;
  /** The other side ended its side cleanly. */
  onUpstreamEnd(): void;
  /** Without an end before it, the connection broke. */
  onUpstreamClose(): void;
  onUpstreamDrain(): void;
}

/**
 * One connection to an upstream. Its listeners stay while its users change: adding and removing them for each request
 * costs more than the rest of it.
 */
export class Upstream {
  readonly stream: Duplex;
  readonly key: string;
  user: UpstreamUser | null = null;
  /** Called when something happens that nobody asked for. */
  onUnexpected: ((upstream: Upstream) => void) | null = null;
  idleSinceMs = 0;
  idleUntilMs = 0;
  /** Why it broke, when it did. */
  error: Error | null = null;
  #ended = false;
  readonly #listeners: readonly (readonly [string, (...args: never[]) => void])[];

  constructor(stream: Duplex, key: string) {
    this.stream = stream;
    this.key = key;
    this.#listeners = [
      ["data", (chunk: Buffer) => (this.user === null ? this.#unexpected() : this.user.onUpstreamData(chunk))],
      ["end", () => this.#onEnd()],
      ["close", () => (this.user === null ? this.#unexpected() : this.user.onUpstreamClose())],
      ["drain", () => this.user?.onUpstreamDrain()],
    ];
    sendPromptly(stream);
    stream.on("error", (error) => {
      this.error ??= error;
    });
    for (const [name, listener] of this.#listeners) stream.on(name, listener as (...args: unknown[]) => void);
    // Whoever connected it may have waited for its first bytes, and paused it.
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

  /** Gives the bare stream away, paused; only its errors are still listened to. */
  release(): Duplex {
    this.user = null;
    this.onUnexpected = null;
    this.stream.pause();
    for (const [name, listener] of this.#listeners) this.stream.off(name, listener as (...args: unknown[]) => void);
    return this.stream;
  }

  #onEnd(): void {
    this.#ended = true;
    if (this.user === null) this.#unexpected();
    else this.user.onUpstreamEnd();
  }

  #unexpected(): void {
    this.onUnexpected?.(this);
    this.stream.destroy();
  }
}
