import type { Duplex } from "node:stream";
import { CaissonError } from "../../contract/error/error.ts";
import { decodeFields, shapes } from "./fields.ts";
import { createFrameParser, encodeFrame, frameCode, frameName, protocolError } from "./frame.ts";
import { errorFromGuest } from "./guest-error.ts";
import { Outbox } from "./outbox.ts";
import { ping } from "./ping.ts";
import type { SlabReader } from "./slab-reader.ts";
import { PING_TIMEOUT_MS, Waits } from "./waits.ts";

/** Handles the frames of one stream. If it throws a `protocol` error, the connection ends. */
export interface StreamHandler {
  /** Returns true if this frame closed the stream. */
  onFrame(type: number, payload: Buffer): boolean;
  /** Receives `OUTPUT` and `DATA` in parts: see `BulkHandler`. Absent for streams on which neither is legal. */
  onBulk?(type: number, head: Buffer, data: Buffer, position: number): void;
  /** Called when the connection closes: at most once, and never after the stream has closed. */
  onLost(error: CaissonError): void;
}

/** A source of acknowledgements. They are collected as late as possible, to send them in batches. */
export interface LazySource {
  takeFrames(send: (frame: Buffer) => void): void;
}

/** The number of cancelled streams whose late frames are ignored; older streams have drained long ago. */
const CANCELLED_MAX = 4_096;
/** Beyond this queue, bulk senders wait for the socket. */
const SOCKET_QUEUE_BYTES = 2 * 1024 * 1024;
/** The number of open streams that the guest opened; the guest accepts as many. */
export const INBOUND_MAX = 2_048;
/** Bulk data waits for the socket. If the guest leaves this much of everything else unread, the connection ends. */
const UNREAD_BYTES_MAX = 32 * 1024 * 1024;
const LAZY_DELAY_MS = 10;
const STREAM_ID_MAX = 0xffff_fffd;

/** One socket to a guest, shared by streams. Checks that every frame belongs to an open stream. */
export class Link {
  /**
   * The listener for streams that the guest opens; it answers each with `adopt` or `refuse`. Without one, opening a
   * stream is a `protocol` error.
   */
  onAccepted: ((stream: number, payload: Buffer) => void) | null = null;
  /** All waits for the guest, each with a time limit. */
  readonly waits: Waits;
  readonly closed: Promise<CaissonError | null>;
  readonly #tellClosed: (error: CaissonError | null) => void;
  readonly #socket: Duplex;
  readonly #outbox: Outbox;
  readonly #streams = new Map<number, StreamHandler>();
  readonly #cancelled = new Set<number>();
  readonly #lazy = new Set<LazySource>();
  #nextId = 1;
  #inbound = 0;
  #isClosed = false;
  #failure: CaissonError | null = null;
  #lazyTimer: NodeJS.Timeout | undefined;
  #draining: PromiseWithResolvers<void> | undefined;
  #heardMs = Date.now();

  /** `reader` is present for a socket that is read into slabs. */
  constructor({ socket, reader }: { socket: Duplex; reader?: SlabReader | undefined }) {
    const { promise, resolve } = Promise.withResolvers<CaissonError | null>();
    this.closed = promise;
    this.#tellClosed = resolve;
    this.#socket = socket;
    this.#outbox = new Outbox(socket);
    this.waits = new Waits({
      ping: () => (this.#isClosed ? Promise.reject(this.#failure) : ping(this, PING_TIMEOUT_MS)),
      cancel: (stream) => this.cancel(stream, encodeFrame("CANCEL", stream)),
      fail: (error) => this.fail(error),
    });
    this.#listen(socket, reader);
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  lastHeardMs(): number {
    return this.#heardMs;
  }

  /** Registers a stream and returns its id. Throws `lost` if the link is closed. */
  open(handler: StreamHandler): number {
    if (this.#isClosed) throw new CaissonError("lost", "the sandbox's guest is no longer reachable", { cause: this.#failure ?? undefined });
    while (this.#streams.has(this.#nextId) || this.#cancelled.has(this.#nextId)) this.#nextId = idAfter(this.#nextId);
    const id = this.#nextId;
    this.#nextId = idAfter(id);
    this.#streams.set(id, handler);
    return id;
  }

  /** Handles stream 0 until the handler reports that the greeting is complete. */
  greet(handler: StreamHandler): void {
    this.#streams.set(0, handler);
  }

  /**
   * Registers a stream that the guest opened. Throws `protocol` for an invalid id, and beyond `INBOUND_MAX` open
   * streams.
   */
  adopt(stream: number, handler: StreamHandler): void {
    this.#checkInbound(stream);
    this.#inbound++;
    this.#streams.set(stream, handler);
  }

  /** Cancels a stream that the guest opened and that no handler adopted. */
  refuse(stream: number): void {
    this.#checkInbound(stream);
    this.#passOver(stream);
    this.send(encodeFrame("CANCEL", stream));
  }

  /** Sends one whole frame. Does nothing if the link is closed: waiters learn of that from `onLost`. */
  send(frame: Buffer): void {
    this.#write(frame);
  }

  /**
   * Sends a frame without copying a large body. The body must not change until the guest has answered, or until
   * `whenWritten` calls back.
   */
  sendWithBody(head: Buffer, body: Uint8Array): void {
    this.#write(head, body);
  }

  /** Calls back when the socket has taken everything sent before, or the link is closed. */
  whenWritten(then: () => void): void {
    if (this.#isClosed) then();
    else this.#outbox.whenWritten(then);
  }

  /** Closes a stream without sending a frame; its late frames are ignored. */
  retire(stream: number): void {
    if (this.#forget(stream)) this.#passOver(stream);
  }

  /** Cancels a stream. Its frames that are still in transit are ignored. */
  cancel(stream: number, frame: Buffer): void {
    if (!this.#streams.has(stream)) return;
    this.retire(stream);
    this.#write(frame);
  }

  /** Resolves when the socket has taken most of the queue. Returns undefined if there is nothing to wait for. */
  drained(): Promise<void> | undefined {
    if (this.#isClosed || this.#outbox.queuedBytes < SOCKET_QUEUE_BYTES) return undefined;
    this.#draining ??= Promise.withResolvers<void>();
    return this.#draining.promise;
  }

  /** Sends the source's frames before the next other frame, or soon. For acknowledgements, which have no waiters. */
  sendLazily(source: LazySource): void {
    if (this.#isClosed) return;
    this.#lazy.add(source);
    if (this.#lazyTimer === undefined) this.#lazyTimer = setTimeout(() => this.#flushLazy(), LAZY_DELAY_MS).unref();
  }

  dropLazy(source: LazySource): void {
    this.#lazy.delete(source);
  }

  fail(error: CaissonError): void {
    this.#shutDown(error);
  }

  close(): void {
    if (!this.#isClosed) {
      this.#flushLazy();
      this.#outbox.flush();
    }
    this.#shutDown(null);
  }

  #listen(socket: Duplex, reader: SlabReader | undefined): void {
    const parser = createFrameParser({
      receiver: "host",
      onFrame: (type, stream, payload) => this.#onFrame(type, stream, payload),
      onBulk: (type, stream, head, data, position) => this.#onBulk(type, stream, head, data, position),
    });
    const receive = (chunk: Buffer) => {
      this.#heardMs = Date.now();
      try {
        parser.push(chunk);
      } catch (error) {
        const unexpectedError = () => new CaissonError("internal", "a frame from the guest could not be handled", { cause: error });
        this.#shutDown(error instanceof CaissonError ? error : unexpectedError());
      }
    };
    if (reader === undefined) socket.on("data", receive);
    else reader.onChunk = receive;
    socket.on("drain", () => {
      this.#draining?.resolve();
      this.#draining = undefined;
    });
    socket.on("error", (error) => this.#shutDown(lostError(error)));
    socket.on("close", () => this.#shutDown(lostError()));
  }

  #onFrame(type: number, stream: number, payload: Buffer): void {
    if (this.#isClosed) return;
    const handler = this.#streams.get(stream);
    if (handler !== undefined) {
      if (handler.onFrame(type, payload)) this.#forget(stream);
    } else if (type === frameCode.ACCEPTED && this.onAccepted !== null) this.onAccepted(stream, payload);
    else if (stream === 0 && type === frameCode.HEARTBEAT) decodeFields("HEARTBEAT", shapes.HEARTBEAT, payload);
    // The guest's final message before it closes the connection.
    else if (stream === 0 && type === frameCode.ERROR) throw errorFromGuest("the connection to the sandbox's guest", payload);
    else this.#refuseUnlessCancelled(type, stream);
  }

  #onBulk(type: number, stream: number, head: Buffer, data: Buffer, position: number): void {
    if (this.#isClosed) return;
    const handler = this.#streams.get(stream);
    if (handler === undefined) this.#refuseUnlessCancelled(type, stream);
    else if (handler.onBulk === undefined) throw protocolError(`${frameName(type)} as an answer`);
    else handler.onBulk(type, head, data, position);
  }

  #refuseUnlessCancelled(type: number, stream: number): void {
    if (!this.#cancelled.has(stream)) throw protocolError(`${frameName(type)} for stream ${stream}, which is not open`);
  }

  #forget(stream: number): boolean {
    if (!this.#streams.delete(stream)) return false;
    if (isInbound(stream)) this.#inbound--;
    return true;
  }

  #checkInbound(stream: number): void {
    if (!isInbound(stream) || this.#streams.has(stream) || this.#cancelled.has(stream)) throw protocolError(`ACCEPTED on stream ${stream}`);
    if (this.#inbound >= INBOUND_MAX) throw protocolError(`more than ${INBOUND_MAX} accepted connections`);
  }

  #passOver(stream: number): void {
    this.#cancelled.add(stream);
    if (this.#cancelled.size > CANCELLED_MAX) for (const oldest of this.#cancelled) if (this.#cancelled.delete(oldest)) break;
  }

  #flushLazy(): void {
    clearTimeout(this.#lazyTimer);
    this.#lazyTimer = undefined;
    if (this.#lazy.size === 0) return;
    const sources = [...this.#lazy];
    this.#lazy.clear();
    for (const source of sources) source.takeFrames((frame) => this.#outbox.add(frame));
  }

  /**
   * Small frames are sent without waiting, so programs inside that make us send them and read nothing must not fill our
   * memory.
   */
  #write(head: Buffer, body?: Uint8Array): void {
    if (this.#isClosed) return;
    if (this.#outbox.queuedBytes > UNREAD_BYTES_MAX) {
      this.#shutDown(protocolError("it does not read what we send"));
      return;
    }
    if (this.#lazy.size > 0) this.#flushLazy();
    this.#outbox.add(head);
    if (body !== undefined) this.#outbox.add(body);
  }

  #shutDown(error: CaissonError | null): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#failure = error;
    this.waits.stop();
    clearTimeout(this.#lazyTimer);
    this.#lazy.clear();
    this.#socket.destroy();
    this.#outbox.drop();
    this.#draining?.resolve();
    const reason = error ?? new CaissonError("lost", "the connection to the guest was closed");
    const waiting = [...this.#streams.values()];
    this.#streams.clear();
    for (const handler of waiting) handler.onLost(reason);
    this.#tellClosed(error);
  }
}

/** Whether the guest opened a stream: its streams have even ids, ours odd ones. */
function isInbound(stream: number): boolean {
  return stream !== 0 && (stream & 1) === 0;
}

function idAfter(id: number): number {
  return id >= STREAM_ID_MAX ? 1 : id + 2;
}

function lostError(cause?: Error): CaissonError {
  return new CaissonError("lost", "the connection to the sandbox's guest broke", {
    hint: "The sandbox may have died or its guest was killed; check with `caisson sandbox ls`.",
    ...(cause === undefined ? {} : { cause }),
  });
}
