import { HEAD_BYTES_MAX, HttpSyntaxError } from "./headers.ts";

const EMPTY_LINE = Buffer.from("\r\n\r\n");
const NOTHING = Buffer.alloc(0);
const FIRST_BYTES = 1024;
const CR = 0x0d;
const LF = 0x0a;
const TAB = 0x09;
const SPACE = 0x20;

/** Collects the bytes of successive heads. Holds at most `HEAD_BYTES_MAX`. */
export class HeadReader {
  /** The bytes after the head that `push` returned last. */
  rest: Buffer = NOTHING;
  readonly #emptyLineBefore: boolean;
  #held = NOTHING;
  #length = 0;
  #skipped = false;

  /** `emptyLineBefore` skips one empty line before a head, because old clients send one after a body. */
  constructor(options: { emptyLineBefore?: boolean } = {}) {
    this.#emptyLineBefore = options.emptyLineBefore ?? false;
  }

  /** Whether a head has started that is not complete. */
  get begun(): boolean {
    return this.#length > 0;
  }

  /**
   * Returns the head with the empty line that ends it, or null while it is incomplete. Throws `HttpSyntaxError` as soon
   * as it cannot become a valid head.
   */
  push(chunk: Buffer): Buffer | null {
    if (this.#length === 0 && !this.#skipped && chunk[0] !== CR) {
      const end = chunk.indexOf(EMPTY_LINE);
      if (end !== -1 && end + 4 <= HEAD_BYTES_MAX) {
        this.rest = end + 4 === chunk.length ? NOTHING : chunk.subarray(end + 4);
        return end + 4 === chunk.length ? chunk : chunk.subarray(0, end + 4);
      }
    }
    return this.#append(chunk);
  }

  #append(chunk: Buffer): Buffer | null {
    const before = this.#length;
    const count = Math.min(chunk.length, HEAD_BYTES_MAX + 2 - before);
    this.#hold(chunk, count);
    let start = 0;
    if (this.#emptyLineBefore && !this.#skipped && this.#held[0] === CR) {
      if (this.#length === 1) return null;
      if (this.#held[1] !== LF) throw new HttpSyntaxError("a line does not end in CR LF");
      this.#skipped = true;
      start = 2;
    }
    const end = this.#held.subarray(0, this.#length).indexOf(EMPTY_LINE, Math.max(start, before - 3));
    if (end !== -1 && end + 4 - start <= HEAD_BYTES_MAX) {
      const head = this.#held.subarray(start, end + 4);
      this.rest = chunk.subarray(end + 4 - before);
      this.#held = NOTHING;
      this.#length = 0;
      this.#skipped = false;
      return head;
    }
    if (start > 0) this.#dropFirst(start);
    if (this.#length >= HEAD_BYTES_MAX) throw new HttpSyntaxError(`the head is longer than ${HEAD_BYTES_MAX} bytes`, 431);
    this.#refuseEarly(Math.max(0, before - start));
    return null;
  }

  #hold(chunk: Buffer, count: number): void {
    const needed = this.#length + count;
    if (needed > this.#held.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(FIRST_BYTES, needed, Math.min(this.#held.length * 2, HEAD_BYTES_MAX + 2)));
      this.#held.copy(larger, 0, 0, this.#length);
      this.#held = larger;
    }
    chunk.copy(this.#held, this.#length, 0, count);
    this.#length = needed;
  }

  #dropFirst(count: number): void {
    this.#held.copyWithin(0, count, this.#length);
    this.#length -= count;
  }

  /** Rejects a client of another protocol at once, instead of after the time limit for a head. */
  #refuseEarly(from: number): void {
    if (this.#length > 0 && this.#held[0] === CR) throw new HttpSyntaxError("the head begins with an empty line");
    for (let at = from; at < this.#length; at += 1) {
      const byte = this.#held[at] as number;
      if (byte >= SPACE || byte === CR || byte === TAB) continue;
      if (byte !== LF) throw new HttpSyntaxError("the head contains a control character");
      if (at === 0 || this.#held[at - 1] !== CR) throw new HttpSyntaxError("a line does not end in CR LF");
    }
  }
}
