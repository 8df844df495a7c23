import { CaissonError } from "../../contract/error/error.ts";

/** The wire contract is docs/guest-protocol.md; both sides are tested against guest/vectors/frames.txt. */
export const FRAME_HEADER_BYTES = 12;
export const FRAME_PAYLOAD_MAX = 262_144;

type Direction = "toGuest" | "toHost" | "both";

/** Every frame type, declared once: its code and its direction. */
export const frameTypes = {
  HELLO: { code: 0x01, direction: "toGuest" },
  WELCOME: { code: 0x02, direction: "toHost" },
  PING: { code: 0x03, direction: "toGuest" },
  PONG: { code: 0x04, direction: "toHost" },
  HEARTBEAT: { code: 0x05, direction: "toHost" },
  OK: { code: 0x06, direction: "toHost" },
  ERROR: { code: 0x07, direction: "toHost" },
  DATA: { code: 0x08, direction: "both" },
  END: { code: 0x09, direction: "both" },
  CREDIT: { code: 0x0a, direction: "both" },
  CANCEL: { code: 0x0b, direction: "toGuest" },
  SHUTDOWN: { code: 0x0c, direction: "toGuest" },
  FENCE: { code: 0x0d, direction: "toGuest" },
  SPAWN: { code: 0x10, direction: "toGuest" },
  ATTACH: { code: 0x11, direction: "toGuest" },
  STARTED: { code: 0x12, direction: "toHost" },
  OUTPUT: { code: 0x13, direction: "toHost" },
  ACK: { code: 0x14, direction: "toGuest" },
  STDIN: { code: 0x15, direction: "toGuest" },
  STDIN_END: { code: 0x16, direction: "toGuest" },
  STDIN_ACK: { code: 0x17, direction: "toHost" },
  ENDED: { code: 0x18, direction: "toHost" },
  RESIZE: { code: 0x19, direction: "toGuest" },
  SIGNAL: { code: 0x1a, direction: "toGuest" },
  FORGET: { code: 0x1b, direction: "toGuest" },
  LIST: { code: 0x1c, direction: "toGuest" },
  KILL: { code: 0x1d, direction: "toGuest" },
  STAT: { code: 0x20, direction: "toGuest" },
  LISTDIR: { code: 0x21, direction: "toGuest" },
  MKDIR: { code: 0x22, direction: "toGuest" },
  MOVE: { code: 0x23, direction: "toGuest" },
  REMOVE: { code: 0x24, direction: "toGuest" },
  READ: { code: 0x25, direction: "toGuest" },
  WRITE: { code: 0x26, direction: "toGuest" },
  WATCH: { code: 0x27, direction: "toGuest" },
  WATCH_EVENT: { code: 0x28, direction: "toHost" },
  TAR_IN: { code: 0x29, direction: "toGuest" },
  TAR_OUT: { code: 0x2a, direction: "toGuest" },
  ENTRY: { code: 0x2b, direction: "toHost" },
  CONNECT: { code: 0x30, direction: "toGuest" },
  LISTENERS: { code: 0x31, direction: "toGuest" },
  LISTEN: { code: 0x32, direction: "toGuest" },
  ACCEPTED: { code: 0x33, direction: "toHost" },
  DATAGRAM: { code: 0x34, direction: "both" },
} as const satisfies Record<string, { code: number; direction: Direction }>;

export type FrameName = keyof typeof frameTypes;

/** The codes by name, such as `frameCode.OUTPUT`, for switches on the hot path. */
export const frameCode = Object.fromEntries(Object.entries(frameTypes).map(([name, { code }]) => [name, code])) as {
  readonly [Name in FrameName]: (typeof frameTypes)[Name]["code"];
};

const nothing = Buffer.alloc(0);
const nameByCode = new Map<number, FrameName>(Object.entries(frameTypes).map(([name, { code }]) => [code, name as FrameName]));

export function frameName(code: number): string {
  return nameByCode.get(code) ?? `0x${code.toString(16).padStart(2, "0")}`;
}

export function protocolError(message: string, details?: Record<string, unknown>): CaissonError {
  return new CaissonError("protocol", `the guest broke the protocol: ${message}`, details === undefined ? {} : { details });
}

export function writeFrameHeader(target: Buffer, type: number, stream: number, payloadBytes: number): void {
  target[0] = payloadBytes & 0xff;
  target[1] = (payloadBytes >>> 8) & 0xff;
  target[2] = (payloadBytes >>> 16) & 0xff;
  target[3] = payloadBytes >>> 24;
  target[4] = type;
  target[5] = 0;
  target[6] = 0;
  target[7] = 0;
  target.writeUInt32LE(stream, 8);
}

/**
 * Encodes a whole frame into one buffer. It copies the payload, so use it for small ones only; bulk data is sent as
 * separate header and body.
 */
export function encodeFrame(type: FrameName, stream: number, payload?: Uint8Array): Buffer {
  const payloadBytes = payload === undefined ? 0 : payload.length;
  const frame = Buffer.allocUnsafe(FRAME_HEADER_BYTES + payloadBytes);
  writeFrameHeader(frame, frameCode[type], stream, payloadBytes);
  if (payload !== undefined) frame.set(payload, FRAME_HEADER_BYTES);
  return frame;
}

/**
 * Receives one frame. The payload is a view of the pushed bytes if the frame arrived in one piece, and a copy
 * otherwise.
 */
export type FrameHandler = (type: number, stream: number, payload: Buffer) => void;

/**
 * Receives the two bulk types, which need not be assembled before use: `head` is the part before the bytes (see
 * `bulkHeadBytes`), and `data` is a view of some of the bytes, starting at `position`.
 */
export type BulkHandler = (type: number, stream: number, head: Buffer, data: Buffer, position: number) => void;

/** How many payload bytes of `OUTPUT` and `DATA` precede the bytes they carry. */
const bulkHeadBytes = new Map<number, number>([
  [frameCode.OUTPUT, 9],
  [frameCode.DATA, 0],
]);

export interface FrameParser {
  /**
   * Calls the handler for each frame that these bytes complete. Throws only what the handler throws and `protocol`
   * errors; after its own `protocol` error, every further call throws the same error.
   */
  push(chunk: Buffer): void;
  /** Bytes held for an incomplete frame; never more than one header and one payload. */
  readonly heldBytes: number;
}

/**
 * Parses a byte stream, no matter how it is split. `receiver` determines the legal types. With `onBulk`, bulk frames go
 * there in the parts in which they arrive, and not to `onFrame`.
 */
export function createFrameParser(options: { receiver: "host" | "guest"; onFrame: FrameHandler; onBulk?: BulkHandler }): FrameParser {
  return new IncrementalParser(options);
}

class IncrementalParser implements FrameParser {
  readonly #onFrame: FrameHandler;
  readonly #onBulk: BulkHandler | undefined;
  readonly #legal: Uint8Array;
  readonly #header = Buffer.alloc(FRAME_HEADER_BYTES);
  #headerHeld = 0;
  /** The payload of a frame that arrives in parts; for bulk, only its head. */
  #payload: Buffer | null = null;
  #payloadHeld = 0;
  #bulk: { dataBytes: number; position: number } | null = null;
  #failure: CaissonError | null = null;

  constructor(options: { receiver: "host" | "guest"; onFrame: FrameHandler; onBulk?: BulkHandler }) {
    this.#onFrame = options.onFrame;
    this.#onBulk = options.onBulk;
    this.#legal = options.receiver === "host" ? legalForHost : legalForGuest;
  }

  get heldBytes(): number {
    return this.#headerHeld + (this.#payload === null ? 0 : this.#payloadHeld);
  }

  push(chunk: Buffer): void {
    if (this.#failure !== null) throw this.#failure;
    const { length } = chunk;
    let at = 0;
    while (at < length) {
      if (this.#headerHeld > 0 || length - at < FRAME_HEADER_BYTES) at = this.#resume(chunk, at);
      else {
        const end = at + FRAME_HEADER_BYTES + this.#checkHeader(chunk, at);
        if (end > length) at = this.#resume(chunk, at);
        else {
          this.#whole(chunk, at, end);
          at = end;
        }
      }
    }
  }

  #whole(chunk: Buffer, at: number, end: number): void {
    const type = chunk[at + 4] as number;
    const stream = chunk.readUInt32LE(at + 8);
    const body = at + FRAME_HEADER_BYTES;
    const headBytes = this.#onBulk === undefined ? undefined : bulkHeadBytes.get(type);
    if (headBytes === undefined) this.#onFrame(type, stream, chunk.subarray(body, end));
    else {
      const data = Math.min(body + headBytes, end);
      this.#onBulk?.(type, stream, headBytes === 0 ? nothing : chunk.subarray(body, data), chunk.subarray(data, end), 0);
    }
  }

  /** Consumes more of a frame that arrives in parts, and returns where it stopped. */
  #resume(chunk: Buffer, from: number): number {
    let at = from;
    if (this.#payload === null) {
      const took = chunk.copy(this.#header, this.#headerHeld, at);
      this.#headerHeld += took;
      at += took;
      if (this.#headerHeld < FRAME_HEADER_BYTES) return at;
      this.#begin(this.#checkHeader(this.#header, 0));
    }
    const payload = this.#payload as unknown as Buffer;
    const took = chunk.copy(payload, this.#payloadHeld, at);
    this.#payloadHeld += took;
    at += took;
    if (this.#payloadHeld < payload.length) return at;
    if (this.#bulk !== null) return this.#resumeBulk(this.#bulk, payload, chunk, at);
    this.#end();
    this.#onFrame(this.#header[4] as number, this.#header.readUInt32LE(8), payload);
    return at;
  }

  #resumeBulk(bulk: { dataBytes: number; position: number }, head: Buffer, chunk: Buffer, at: number): number {
    const { position } = bulk;
    const end = Math.min(chunk.length, at + bulk.dataBytes - position);
    bulk.position += end - at;
    const isComplete = bulk.position === bulk.dataBytes;
    if (isComplete) this.#end();
    if (end > at || isComplete)
      this.#onBulk?.(this.#header[4] as number, this.#header.readUInt32LE(8), head, chunk.subarray(at, end), position);
    return end;
  }

  #begin(payloadBytes: number): void {
    const headBytes = this.#onBulk === undefined ? undefined : bulkHeadBytes.get(this.#header[4] as number);
    const held = headBytes === undefined ? payloadBytes : Math.min(headBytes, payloadBytes);
    this.#payload = Buffer.allocUnsafeSlow(held);
    this.#payloadHeld = 0;
    this.#bulk = headBytes === undefined ? null : { dataBytes: payloadBytes - held, position: 0 };
  }

  #end(): void {
    this.#payload = null;
    this.#bulk = null;
    this.#headerHeld = 0;
  }

  #checkHeader(bytes: Buffer, at: number): number {
    const length = bytes.readUInt32LE(at);
    const type = bytes[at + 4] as number;
    if (length > FRAME_PAYLOAD_MAX) this.#fail(`a frame of ${length} bytes exceeds the limit of ${FRAME_PAYLOAD_MAX}`);
    if (this.#legal[type] !== 1) this.#fail(`unexpected frame type ${frameName(type)}`);
    if (bytes[at + 5] !== 0 || bytes[at + 6] !== 0 || bytes[at + 7] !== 0)
      this.#fail(`flags or reserved bytes of ${frameName(type)} are not zero`);
    return length;
  }

  #fail(message: string): never {
    this.#failure = protocolError(message);
    this.#end();
    throw this.#failure;
  }
}

function legalTypes(receiver: Direction): Uint8Array {
  const legal = new Uint8Array(256);
  for (const { code, direction } of Object.values(frameTypes)) if (direction === receiver || direction === "both") legal[code] = 1;
  return legal;
}
const legalForHost = legalTypes("toHost");
const legalForGuest = legalTypes("toGuest");
