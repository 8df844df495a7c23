import type { Duplex } from "node:stream";
import { CaissonError } from "../../contract/error.ts";
import { decodeFields, shapes } from "./fields.ts";
import { createFrameParser, encodeFrame, frameCode, frameName, protocolError } from "./frame.ts";
import { errorFromGuest } from "./guest-error.ts";
import { Outbox } from "./outbox.ts";
import { ping } from "./ping.ts";
import type { SlabReader } from "./slab-reader.ts";
import { PING_TIMEOUT_MS, Waits } from "./waits.ts";

/** Takes the frames of one stream. What it throws of code `protocol` ends the connection. */
export interface StreamHandler {
  /** Returns true when this frame closed the stream. */
  onFrame(type: number, payload: Buffer): boolean;
  /** `OUTPUT` and `DATA`, in parts: see `BulkHandler`. Absent where neither may come. */
  onBulk?(type: number, head: Buffer, data: Buffer, position: number): void;
  /** The connection is gone; called at most once, and never after the stream closed. */
  onLost(error: CaissonError): void;
}

/** One socket to a guest, shared by streams. It checks that every frame belongs to a stream that is open. */
export interface Link {
  /** Registers a stream and returns its id. Throws `lost` once the link is closed. */
  open(handler: StreamHandler): number;
  /** Takes what comes on stream 0 until it says that the greeting is over. */
  greet(handler: StreamHandler): void;
  /** Who is told of streams that the guest opens; it answers each with `adopt` or `refuse`. Nobody: opening one is a `protocol` error. */
  onAccepted: ((stream: number, payload: Buffer) => void) | null;
  /** Registers a stream that the guest opened. Throws `protocol` for an id that cannot be, and past `INBOUND_MAX` open ones. */
  adopt(stream: number, handler: StreamHandler): void;
  /** Gives up a stream that the guest opened, without having taken it. */
  refuse(stream: number): void;
  /** Sends one whole frame. Nothing happens once the link is closed: whoever waits is told by `onLost`. */
  send(frame: Buffer): void;
  /** Sends a frame whose body is not copied when it is large; it must not change until the guest answered, or `whenWritten`. */
  sendWithBody(head: Buffer, body: Uint8Array): void;
  /** Calls back when the socket has taken what was sent so far, or the link is closed. */
  whenWritten(then: () => void): void;
  /** The stream is over without another frame; late ones of it are passed over. */
  retire(stream: number): void;
  /** Gives a stream up. Frames of it that are on their way are passed over. */
  cancel(stream: number, frame: Buffer): void;
  /** Resolves when the socket took most of what was sent; undefined when there is nothing to wait for. */
  drained(): Promise<void> | undefined;
  /** Sends `frame` before the next other frame, or soon. For acknowledgements, which nobody waits for. */
  sendLazily(source: LazySource): void;
  dropLazy(source: LazySource): void;
  /** Whoever waits for the guest waits here, with an end. */
  readonly waits: Waits;
  fail(error: CaissonError): void;
  close(): void;
  readonly isClosed: boolean;
  readonly closed: Promise<CaissonError | null>;
  lastHeardMs(): number;
}

/** Something with acknowledgements to send; asked for them as late as possible, so that they come in batches. */
export interface LazySource {
  takeFrames(send: (frame: Buffer) => void): void;
}

/** Cancelled streams whose late frames are passed over; older ones have long been drained. */
const CANCELLED_MAX = 4_096;
/** Past this, bulk senders wait for the socket. */
const SOCKET_QUEUE_BYTES = 2 * 1024 * 1024;
/** Streams that the guest opened and that are open at once: as many as it may accept. */
export const INBOUND_MAX = 2_048;
/** Bulk waits for the socket; a guest that leaves this much of everything else unread will not read it at all. */
const UNREAD_BYTES_MAX = 32 * 1024 * 1024;
const LAZY_DELAY_MS = 10;
const STREAM_ID_MAX = 0xffff_fffd;

/** `reader` is given for a socket that is read into slabs. */
export function createLink(options: { socket: Duplex; reader?: SlabReader | undefined }): Link {
  const { socket } = options;
  const streams = new Map<number, StreamHandler>();
  const cancelled = new Set<number>();
  const lazy = new Set<LazySource>();
  const outbox = new Outbox(socket);
  const closedOnce = Promise.withResolvers<CaissonError | null>();
  let nextId = 1;
  let inbound = 0;
  let closed = false;
  let failure: CaissonError | null = null;
  let lazyTimer: NodeJS.Timeout | undefined;
  let draining: PromiseWithResolvers<void> | undefined;
  let heardMs = Date.now();

  const shutDown = (error: CaissonError | null) => {
    if (closed) return;
    closed = true;
    failure = error;
    link.waits.stop();
    clearTimeout(lazyTimer);
    lazy.clear();
    socket.destroy();
    outbox.drop();
    draining?.resolve();
    const told = error ?? new CaissonError("lost", "the connection to the guest was closed");
    const waiting = [...streams.values()];
    streams.clear();
    for (const handler of waiting) handler.onLost(told);
    closedOnce.resolve(error);
  };

  const onFrame = (type: number, stream: number, payload: Buffer) => {
    if (closed) return;
    const handler = streams.get(stream);
    if (handler !== undefined) {
      if (handler.onFrame(type, payload)) forget(stream);
    } else if (type === frameCode.ACCEPTED && link.onAccepted !== null) link.onAccepted(stream, payload);
    else if (stream === 0 && type === frameCode.HEARTBEAT) decodeFields("HEARTBEAT", shapes.HEARTBEAT, payload);
    // The guest's last word before it closes the connection.
    else if (stream === 0 && type === frameCode.ERROR) throw errorFromGuest("the connection to the sandbox's guest", payload);
    else refuseUnlessCancelled(type, stream);
  };
  const onBulk = (type: number, stream: number, head: Buffer, data: Buffer, position: number) => {
    if (closed) return;
    const handler = streams.get(stream);
    if (handler === undefined) refuseUnlessCancelled(type, stream);
    else if (handler.onBulk === undefined) throw protocolError(`${frameName(type)} as an answer`);
    else handler.onBulk(type, head, data, position);
  };
  const refuseUnlessCancelled = (type: number, stream: number) => {
    if (!cancelled.has(stream)) throw protocolError(`${frameName(type)} for stream ${stream}, which is not open`);
  };
  const parser = createFrameParser({ receiver: "host", onFrame, onBulk });

  const receive = (chunk: Buffer) => {
    heardMs = Date.now();
    try {
      parser.push(chunk);
    } catch (error) {
      shutDown(
        error instanceof CaissonError ? error : new CaissonError("internal", "a frame of the guest could not be handled", { cause: error }),
      );
    }
  };
  if (options.reader === undefined) socket.on("data", receive);
  else options.reader.onChunk = receive;
  socket.on("drain", () => {
    draining?.resolve();
    draining = undefined;
  });
  socket.on("error", (error) => shutDown(lostError(error)));
  socket.on("close", () => shutDown(lostError()));

  const isInbound = (stream: number) => stream !== 0 && (stream & 1) === 0;
  const forget = (stream: number): boolean => {
    if (!streams.delete(stream)) return false;
    if (isInbound(stream)) inbound--;
    return true;
  };
  const checkInbound = (stream: number) => {
    if (!isInbound(stream) || streams.has(stream) || cancelled.has(stream)) throw protocolError(`ACCEPTED on stream ${stream}`);
    if (inbound >= INBOUND_MAX) throw protocolError(`more than ${INBOUND_MAX} accepted connections`);
  };
  const retire = (stream: number) => {
    if (forget(stream)) passOver(stream);
  };
  const passOver = (stream: number) => {
    cancelled.add(stream);
    if (cancelled.size > CANCELLED_MAX) for (const oldest of cancelled) if (cancelled.delete(oldest)) break;
  };
  const flushLazy = () => {
    clearTimeout(lazyTimer);
    lazyTimer = undefined;
    if (lazy.size === 0) return;
    const sources = [...lazy];
    lazy.clear();
    for (const source of sources) source.takeFrames((frame) => outbox.add(frame));
  };
  /** Small frames are sent without waiting; somebody inside who makes us send them and reads nothing must not fill our memory. */
  const write = (head: Buffer, body?: Uint8Array) => {
    if (closed) return;
    if (outbox.queuedBytes > UNREAD_BYTES_MAX) {
      shutDown(protocolError("it does not read what it is sent"));
      return;
    }
    if (lazy.size > 0) flushLazy();
    outbox.add(head);
    if (body !== undefined) outbox.add(body);
  };

  const link: Link = {
    onAccepted: null,
    waits: new Waits({
      ping: () => (closed ? Promise.reject(failure) : ping(link, PING_TIMEOUT_MS)),
      cancel: (stream) => link.cancel(stream, encodeFrame("CANCEL", stream)),
      fail: shutDown,
    }),
    adopt(stream, handler) {
      checkInbound(stream);
      inbound++;
      streams.set(stream, handler);
    },
    refuse(stream) {
      checkInbound(stream);
      passOver(stream);
      write(encodeFrame("CANCEL", stream));
    },
    open(handler) {
      if (closed) throw new CaissonError("lost", "the sandbox's guest is not reachable any more", { cause: failure ?? undefined });
      while (streams.has(nextId) || cancelled.has(nextId)) nextId = nextId >= STREAM_ID_MAX ? 1 : nextId + 2;
      const id = nextId;
      nextId = id >= STREAM_ID_MAX ? 1 : id + 2;
      streams.set(id, handler);
      return id;
    },
    greet: (handler) => void streams.set(0, handler),
    whenWritten: (then) => {
      if (closed) then();
      else outbox.whenWritten(then);
    },
    retire,
    send: (frame) => write(frame),
    sendWithBody: write,
    cancel(stream, frame) {
      if (!streams.has(stream)) return;
      retire(stream);
      write(frame);
    },
    drained() {
      if (closed || outbox.queuedBytes < SOCKET_QUEUE_BYTES) return undefined;
      draining ??= Promise.withResolvers<void>();
      return draining.promise;
    },
    sendLazily(source) {
      if (closed) return;
      lazy.add(source);
      if (lazyTimer === undefined) lazyTimer = setTimeout(flushLazy, LAZY_DELAY_MS).unref();
    },
    dropLazy: (source) => void lazy.delete(source),
    fail: shutDown,
    close: () => {
      if (!closed) {
        flushLazy();
        outbox.flush();
      }
      shutDown(null);
    },
    get isClosed() {
      return closed;
    },
    closed: closedOnce.promise,
    lastHeardMs: () => heardMs,
  };
  return link;
}

function lostError(cause?: Error): CaissonError {
  return new CaissonError("lost", "the connection to the sandbox's guest broke", {
    hint: "The sandbox may have died or its guest was killed; `caisson sandbox ls` shows what is left.",
    ...(cause === undefined ? {} : { cause }),
  });
}
