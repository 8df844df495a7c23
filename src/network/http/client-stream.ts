import type { Duplex } from "node:stream";
import { sendPromptly } from "./reset-stream.ts";
import { NOTHING, writeMessage } from "./write-message.ts";

export interface ClientEvents {
  onData(chunk: Buffer): void;
  onEnd(): void;
  onDrain(): void;
}

/** The bytes of a client: what it sent and nobody used yet, what is written to it, and how many of both. */
export class ClientStream {
  readonly duplex: Duplex;
  /** When the client ended its side. */
  endedMs: number | null = null;
  #held = NOTHING;
  readonly #onBytes: ((sent: number, received: number) => void) | undefined;
  readonly #onData: (chunk: Buffer) => void;
  readonly #onEnd: () => void;
  readonly #onDrain: () => void;

  constructor(duplex: Duplex, events: ClientEvents, onBytes: ((sent: number, received: number) => void) | undefined) {
    this.duplex = duplex;
    this.#onBytes = onBytes;
    this.#onData = (chunk) => {
      onBytes?.(chunk.length, 0);
      events.onData(chunk);
    };
    this.#onEnd = () => {
      this.endedMs = performance.now();
      events.onEnd();
    };
    this.#onDrain = () => events.onDrain();
  }

  /** `first` are bytes that were read before. */
  listen(first: Buffer | undefined): void {
    const { duplex } = this;
    sendPromptly(duplex);
    duplex.on("end", this.#onEnd);
    duplex.on("drain", this.#onDrain);
    duplex.on("data", this.#onData);
    duplex.resume();
    // Whoever read the first bytes may have come to the end with them, and that is told only once.
    if (duplex.readableEnded) this.endedMs = performance.now();
    if (first !== undefined && first.length > 0) this.#onData(first);
    if (duplex.readableEnded && duplex.listeners("end").includes(this.#onEnd)) this.#onEnd();
  }

  /** Gives the stream away, paused, with what nobody used. */
  letGo(): Buffer {
    this.duplex.pause();
    this.duplex.off("data", this.#onData).off("end", this.#onEnd).off("drain", this.#onDrain);
    return this.takeHeld();
  }

  get holdsBytes(): boolean {
    return this.#held.length > 0;
  }

  /** Bytes that nobody used yet; they are the caller's then. */
  takeHeld(): Buffer {
    const held = this.#held;
    this.#held = NOTHING;
    return held;
  }

  /** Keeps bytes for later. */
  hold(bytes: Buffer): void {
    this.#held = this.#held.length === 0 ? bytes : Buffer.concat([this.#held, bytes]);
  }

  pause(): void {
    this.duplex.pause();
  }

  resume(): void {
    if (this.duplex.isPaused()) this.duplex.resume();
  }

  /** False: wait for `onDrain`. */
  write(bytes: Buffer): boolean {
    this.#onBytes?.(0, bytes.length);
    return this.duplex.write(bytes);
  }

  /** A head, whose every character is one byte, and what there is of the body. */
  writeMessage(head: string, body: Buffer): boolean {
    this.#onBytes?.(0, head.length + body.length);
    return writeMessage(this.duplex, head, body);
  }
}
