import { type Header, HttpSyntaxError, parseHeaderLines } from "./headers.ts";

/** Twelve hexadecimal digits allow up to 2^48 bytes: a number holds that exactly, and no real chunk is larger. */
const SIZE_DIGITS_MAX = 12;
const EXTENSION_BYTES_MAX = 256;
const TRAILER_BYTES_MAX = 8192;
const CR = 0x0d;
const LF = 0x0a;
const TAB = 0x09;
const SPACE = 0x20;
const DELETE = 0x7f;
const SEMICOLON = 0x3b;

/** Fields that state the length, the destination or the sender of a message must not follow it. */
const notInTrailers = new Set(
  "authorization connection content-encoding content-length cookie expect host keep-alive set-cookie te trailer transfer-encoding upgrade".split(
    " ",
  ),
);

type Part = "size" | "extension" | "sizeLf" | "data" | "dataCr" | "dataLf" | "trailer" | "done";

/** Parses one chunked body, however its bytes are cut. Rejects all but the plainest form. */
export class ChunkedScanner {
  /** Filled in when the body is complete. */
  trailers: Header[] = [];
  #part: Part = "size";
  #size = 0;
  #count = 0;
  #trailer: Buffer[] = [];
  #trailerBytes = 0;
  #lineBytes = 0;
  #afterCr = false;

  get done(): boolean {
    return this.#part === "done";
  }

  /**
   * Returns where the body ends in `chunk`, or the chunk's length. `onPayload` receives the contents of the chunks.
   * Throws `HttpSyntaxError`, after which no part of `chunk` may be passed on.
   */
  scan(chunk: Buffer, from: number, onPayload?: (payload: Buffer) => void): number {
    let at = from;
    while (at < chunk.length && this.#part !== "done") {
      if (this.#part === "data") {
        const end = Math.min(chunk.length, at + this.#size);
        onPayload?.(chunk.subarray(at, end));
        this.#size -= end - at;
        at = end;
        if (this.#size === 0) this.#part = "dataCr";
      } else if (this.#part === "trailer") at = this.#scanTrailer(chunk, at);
      else {
        this.#step(chunk[at] as number);
        at += 1;
      }
    }
    return at;
  }

  #step(byte: number): void {
    switch (this.#part) {
      case "size":
        this.#sizeByte(byte);
        return;
      case "extension":
        this.#count += 1;
        if (byte === CR) this.#part = "sizeLf";
        else if ((byte < SPACE && byte !== TAB) || byte === DELETE)
          throw new HttpSyntaxError("a chunk extension contains a control character");
        else if (this.#count > EXTENSION_BYTES_MAX) throw new HttpSyntaxError("a chunk extension is too long");
        return;
      case "sizeLf":
        if (byte !== LF) throw new HttpSyntaxError("a chunk size is not followed by CR LF");
        this.#count = 0;
        this.#part = this.#size === 0 ? "trailer" : "data";
        return;
      case "dataCr":
        if (byte !== CR) throw new HttpSyntaxError("a chunk is longer than its size");
        this.#part = "dataLf";
        return;
      default:
        if (byte !== LF) throw new HttpSyntaxError("a chunk is not followed by CR LF");
        this.#part = "size";
    }
  }

  #sizeByte(byte: number): void {
    const digit = hexDigit(byte);
    if (digit >= 0) {
      this.#count += 1;
      if (this.#count > SIZE_DIGITS_MAX) throw new HttpSyntaxError("a chunk size has too many digits");
      this.#size = this.#size * 16 + digit;
      return;
    }
    if (this.#count === 0 || (byte !== CR && byte !== SEMICOLON))
      throw new HttpSyntaxError("a chunk size is not a plain hexadecimal number");
    this.#count = 0;
    this.#part = byte === CR ? "sizeLf" : "extension";
  }

  #scanTrailer(chunk: Buffer, from: number): number {
    let at = from;
    let ended = false;
    while (at < chunk.length && !ended) {
      const byte = chunk[at] as number;
      at += 1;
      if (this.#afterCr) {
        if (byte !== LF) throw new HttpSyntaxError("a trailer line does not end in CR LF");
        ended = this.#lineBytes === 0;
        this.#afterCr = false;
        this.#lineBytes = 0;
      } else if (byte === CR) this.#afterCr = true;
      else if (byte === LF) throw new HttpSyntaxError("a trailer line does not end in CR LF");
      else this.#lineBytes += 1;
    }
    this.#trailerBytes += at - from;
    if (this.#trailerBytes > TRAILER_BYTES_MAX) throw new HttpSyntaxError("the trailers are too long");
    this.#trailer.push(Buffer.from(chunk.subarray(from, at)));
    if (ended) {
      if (this.#trailerBytes > 2) this.trailers = trailersIn(Buffer.concat(this.#trailer));
      this.#part = "done";
    }
    return at;
  }
}

/** Encodes `payload` as one chunk. It must not be empty, because an empty chunk ends the body. */
export function encodeChunk(payload: Buffer): Buffer {
  const size = `${payload.length.toString(16)}\r\n`;
  const bytes = Buffer.allocUnsafe(size.length + payload.length + 2);
  bytes.write(size, 0, "latin1");
  payload.copy(bytes, size.length);
  bytes[bytes.length - 2] = CR;
  bytes[bytes.length - 1] = LF;
  return bytes;
}

export const LAST_CHUNK = Buffer.from("0\r\n\r\n");

function trailersIn(bytes: Buffer): Header[] {
  const trailers = parseHeaderLines(bytes);
  for (const { lower } of trailers) {
    if (notInTrailers.has(lower) || lower.startsWith("proxy-")) throw new HttpSyntaxError(`${lower} is not allowed in trailers`);
  }
  return trailers;
}

function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const letter = byte | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}
