import type { Duplex } from "node:stream";
import { sendPromptly } from "./reset-stream.ts";
import { NOTHING, writeMessage } from "./write-message.ts";

export interface ClientEvents {
  onData(chunk: Buffer): void;
  onEnd(): void;
  onDrain(): void;
}

/** The bytes of a client: those received but not yet used, those written to it, and the counts of both. */
export class ClientStream {
  readonly duplex: Duplex;
  /** When the client ended its side, or null. */
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

  /** Starts to listen. `first` are bytes that were already read. */
  listen(first: Buffer | undefined): void {
    const { duplex } = this;
    sendPromptly(duplex);
    duplex.on("end", this.#onEnd);
    duplex.on("drain", this.#onDrain);
    duplex.on("data", this.#onData);
    duplex.resume();
    // The reader of the first bytes may have seen the end, which is reported only once.
    if (duplex.readableEnded) this.endedMs = performance.now();
    if (first !== undefined && first.length > 0) this.#onData(first);
    if (duplex.readableEnded && duplex.listeners("end").includes(this.#onEnd)) this.#onEnd();
  }

  /** Hands over the stream, paused, with the unused bytes. */
  detach(): Buffer {
    this.duplex.pause();
    this.duplex.off("data", this.#onData).off("end", this.#onEnd).off("drain", this.#onDrain);
    return this.takeHeld();
  }

  get holdsBytes(): boolean {
    return this.#held.length > 0;
  }

  /** Returns the unused bytes, which then belong to the caller. */
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

  /** Returns false if the caller must wait for `onDrain`. */
  write(bytes: Buffer): boolean {
    this.#onBytes?.(0, bytes.length);
    return this.duplex.write(bytes);
  }

  /** Writes a head, with one byte per character, and the available part of the body. */
  writeMessage(head: string, body: Buffer): boolean {
    this.#onBytes?.(0, head.length + body.length);
    return writeMessage(this.duplex, head, body);
  }
}
