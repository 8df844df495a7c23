import { ChunkedScanner } from "./chunked.ts";
import type { RequestHead, ResponseHead } from "./head.ts";

/** How a body's end is known. `bytes` is for `length` only. */
export interface BodyFraming {
  readonly kind: "none" | "length" | "chunked" | "close";
  readonly bytes: number;
}

export const noBody: BodyFraming = { kind: "none", bytes: 0 };
export const untilClose: BodyFraming = { kind: "close", bytes: 0 };
export const chunkedBody: BodyFraming = { kind: "chunked", bytes: 0 };

/** Of a head that was parsed: it states its length at most once. */
export function requestFraming(head: RequestHead): BodyFraming {
  return stated(head) ?? noBody;
}

/** Of the answer to a request with this method. */
export function responseFraming(head: ResponseHead, method: string): BodyFraming {
  const { status } = head;
  if (status < 200 || status === 204 || status === 304 || method === "HEAD") return noBody;
  if (method === "CONNECT" && status < 300) return noBody;
  return stated(head) ?? untilClose;
}

function stated(head: RequestHead | ResponseHead): BodyFraming | null {
  for (const { lower, value } of head.headers) {
    if (lower === "content-length") return { kind: "length", bytes: Number(value) };
    if (lower === "transfer-encoding") return chunkedBody;
  }
  return null;
}

/** Finds the end of one body after the other, however the bytes are cut. */
export class BodyScanner {
  /** The body is complete. */
  done = true;
  #kind: BodyFraming["kind"] = "none";
  #left = 0;
  #chunked: ChunkedScanner | null = null;

  start(framing: BodyFraming): void {
    this.#kind = framing.kind;
    this.#left = framing.bytes;
    this.#chunked = framing.kind === "chunked" ? new ChunkedScanner() : null;
    this.done = framing.kind === "none" || (framing.kind === "length" && framing.bytes === 0);
  }

  /**
   * Where the body ends in `chunk`, or its length when there is more to come. `onPayload` is given the body without its
   * framing. Throws `HttpSyntaxError`.
   */
  scan(chunk: Buffer, from: number, onPayload?: (payload: Buffer) => void): number {
    if (this.done) return from;
    if (this.#chunked !== null) {
      const end = this.#chunked.scan(chunk, from, onPayload);
      this.done = this.#chunked.done;
      return end;
    }
    const end = this.#kind === "close" ? chunk.length : Math.min(chunk.length, from + this.#left);
    if (this.#kind === "length") {
      this.#left -= end - from;
      this.done = this.#left === 0;
    }
    if (onPayload !== undefined && end > from) onPayload(chunk.subarray(from, end));
    return end;
  }

  /** The sender has ended its side cleanly. Whether the body is complete by that. */
  end(): boolean {
    if (this.#kind === "close") this.done = true;
    return this.done;
  }
}
