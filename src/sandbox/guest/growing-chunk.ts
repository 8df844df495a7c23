/** The number of chunks that may wait individually; beyond it, small ones are merged. */
export const CHUNKS_MAX = 1_024;
const GROWING_BYTES = 65_536;

/** A buffer that collects small pieces, so a flood of tiny frames costs bytes rather than objects. */
export class GrowingChunk {
  readonly #buffer = Buffer.allocUnsafeSlow(GROWING_BYTES);
  #used = 0;

  /** Returns everything collected so far, or null if the piece does not fit. */
  append(piece: Uint8Array): Buffer | null {
    if (this.#used + piece.length > GROWING_BYTES) return null;
    this.#buffer.set(piece, this.#used);
    this.#used += piece.length;
    return this.#buffer.subarray(0, this.#used);
  }
}
