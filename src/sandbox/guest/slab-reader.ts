import type { OnReadOpts } from "node:net";

/** For answers and lines of output; memory outside of its heap makes the collector run more often. */
const SLAB_BYTES = 131_072;
/** While much comes at a time. */
const BULK_SLAB_BYTES = 1_048_576;
const BULK_READ_BYTES = 16_384;
/** A new slab is taken when less than this is left of the old one. */
const READ_BYTES_MIN = 65_536;

/**
 * Has a socket read straight into large pieces of memory, one after the other. A stream's own way, a fresh buffer for
 * each read, costs more in collecting garbage than in reading. Nothing is ever overwritten: views of a slab stay valid.
 */
export class SlabReader {
  #slab = Buffer.allocUnsafeSlow(SLAB_BYTES);
  #used = 0;
  #lastBytes = 0;
  /** Takes the bytes; set before any can come. */
  onChunk: (chunk: Buffer) => void = () => {};

  readonly onread: OnReadOpts = {
    buffer: () => this.#room(),
    callback: (bytes) => {
      const chunk = this.#slab.subarray(this.#used, this.#used + bytes);
      this.#used += bytes;
      this.#lastBytes = bytes;
      this.onChunk(chunk);
      return true;
    },
  };

  #room(): Buffer {
    if (this.#slab.length - this.#used < READ_BYTES_MIN) {
      this.#slab = Buffer.allocUnsafeSlow(this.#lastBytes < BULK_READ_BYTES ? SLAB_BYTES : BULK_SLAB_BYTES);
      this.#used = 0;
    }
    return this.#slab.subarray(this.#used);
  }
}

/** Smaller pieces are copied: a few bytes that somebody keeps must not keep the whole slab they came in. */
const COPY_BELOW_BYTES = 4_096;

export function ownIfSmall(data: Buffer): Buffer {
  return data.length < COPY_BELOW_BYTES ? Buffer.from(data) : data;
}
