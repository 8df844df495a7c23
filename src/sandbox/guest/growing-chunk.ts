/** Chunks that may wait one by one; past that, small ones are gathered. */
export const CHUNKS_MAX = 1_024;
const GROWING_BYTES = 65_536;

/** One buffer that small pieces are copied into, so that a flood of tiny frames costs bytes and not objects. */
export class GrowingChunk {
  readonly #buffer = Buffer.allocUnsafeSlow(GROWING_BYTES);
  #used = 0;

  /** Everything gathered so far, or null when the piece does not fit any more. */
  append(piece: Uint8Array): Buffer | null {
    if (this.#used + piece.length > GROWING_BYTES) return null;
    this.#buffer.set(piece, this.#used);
    this.#used += piece.length;
    return this.#buffer.subarray(0, this.#used);
  }
}
