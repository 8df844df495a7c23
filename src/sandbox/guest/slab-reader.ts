import type { OnReadOpts } from "node:net";

/** Enough for answers and lines of output; memory outside the heap makes the garbage collector run more often. */
const SLAB_BYTES = 131_072;
/** The slab size while reads are large. */
const BULK_SLAB_BYTES = 1_048_576;
const BULK_READ_BYTES = 16_384;
/** If less than this remains of a slab, a new one replaces it. */
const READ_BYTES_MIN = 65_536;

/**
 * Makes a socket read straight into large slabs, one after the other. A stream's default, a fresh buffer for each read,
 * costs more in garbage collection than in reading. Nothing is ever overwritten: views of a slab stay valid.
 */
export class SlabReader {
  #slab = Buffer.allocUnsafeSlow(SLAB_BYTES);
  #used = 0;
  #lastBytes = 0;
  /** Receives the bytes. Set it before any can arrive. */
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

/** Smaller pieces are copied: a consumer that keeps a few bytes must not keep the whole slab they arrived in. */
const COPY_BELOW_BYTES = 4_096;

export function ownIfSmall(data: Buffer): Buffer {
  return data.length < COPY_BELOW_BYTES ? Buffer.from(data) : data;
}
