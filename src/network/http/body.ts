import { ChunkedScanner } from "./chunked-coding.ts";
import type { RequestHead, ResponseHead } from "./head.ts";

/** How the end of a body is determined. `bytes` applies only to `length`. */
export interface BodyFraming {
  readonly kind: "none" | "length" | "chunked" | "close";
  readonly bytes: number;
}

export const noBody: BodyFraming = { kind: "none", bytes: 0 };
export const untilClose: BodyFraming = { kind: "close", bytes: 0 };
export const chunkedBody: BodyFraming = { kind: "chunked", bytes: 0 };

/** Returns the framing of a parsed head, which states its length at most once. */
export function requestFraming(head: RequestHead): BodyFraming {
  return statedFraming(head) ?? noBody;
}

/** Returns the framing of the answer to a request with this method. */
export function responseFraming(head: ResponseHead, method: string): BodyFraming {
  const { status } = head;
  if (status < 200 || status === 204 || status === 304 || method === "HEAD") return noBody;
  if (method === "CONNECT" && status < 300) return noBody;
  return statedFraming(head) ?? untilClose;
}

function statedFraming(head: RequestHead | ResponseHead): BodyFraming | null {
  for (const { lower, value } of head.headers) {
    if (lower === "content-length") return { kind: "length", bytes: Number(value) };
    if (lower === "transfer-encoding") return chunkedBody;
  }
  return null;
}

/** Finds the end of successive bodies, however the bytes are cut. */
export class BodyScanner {
  /** Whether the body is complete. */
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
   * Returns where the body ends in `chunk`, or the chunk's length if more follows. `onPayload` receives the body
   * without its framing. Throws `HttpSyntaxError`.
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

  /** Called when the sender has ended its side cleanly. Returns whether that completes the body. */
  end(): boolean {
    if (this.#kind === "close") this.done = true;
    return this.done;
  }
}
