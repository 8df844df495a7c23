import type { Duplex } from "node:stream";

/**
 * Pieces up to this size are copied back to back, to send many small frames in one write; larger ones are written
 * without a copy.
 */
export const COPIED_BYTES_MAX = 16_384;
/** Small, because there may be hundreds of connections, most of them idle. */
const SLAB_BYTES = 2_048;
const SLAB_BYTES_MAX = 65_536;
/** Beyond this, frames are not held back until the end of the turn. */
const HELD_BYTES_MAX = 262_144;
const nothing = Buffer.alloc(0);

/**
 * Frames on their way to a socket. Frames that the first piece of work in an event loop turn sends leave immediately;
 * all later ones leave together at the end of the turn. That makes two system calls for any number of streams.
 */
export class Outbox {
  readonly #socket: Duplex;
  #slab = Buffer.allocUnsafeSlow(SLAB_BYTES);
  #from = 0;
  #used = 0;
  /** Pieces that precede the unwritten part of the slab. */
  #held: Uint8Array[] = [];
  #heldBytes = 0;
  /**
   * Callbacks by the number of the write that they wait for. Only writes that may have a waiter are counted, because a
   * completion callback costs more than a small write.
   */
  readonly #waiting: { write: number; then: () => void }[] = [];
  #writes = 0;
  #written = 0;
  #isLastCounted = false;
  #state: "idle" | "first" | "rest" = "idle";
  readonly #endOfWork = () => {
    this.#state = "rest";
    this.flush();
    setImmediate(this.#endOfTurn);
  };
  readonly #endOfTurn = () => {
    this.#state = "idle";
    this.flush();
  };

  readonly #onWritten = () => {
    this.#written++;
    while (this.#waiting[0] !== undefined && this.#waiting[0].write <= this.#written) this.#waiting.shift()?.then();
  };

  constructor(socket: Duplex) {
    this.#socket = socket;
  }

  /** The number of bytes that the kernel has not taken yet. */
  get queuedBytes(): number {
    return this.#heldBytes + this.#socket.writableLength;
  }

  /** Adds a piece. If it is larger than `COPIED_BYTES_MAX`, it must not change until it has been written. */
  add(piece: Uint8Array): void {
    this.#heldBytes += piece.length;
    if (piece.length > COPIED_BYTES_MAX) {
      // Large enough for a separate write, and its sender waits for it.
      this.#seal();
      this.#held.push(piece);
      this.flush();
      return;
    }
    if (piece.length > this.#slab.length - this.#used) this.#renew(piece.length);
    this.#slab.set(piece, this.#used);
    this.#used += piece.length;
    if (this.#heldBytes > HELD_BYTES_MAX) this.flush();
    else if (this.#state === "idle") {
      this.#state = "first";
      process.nextTick(this.#endOfWork);
    }
  }

  /** Calls back when the kernel has taken everything added before, or the socket broke. */
  whenWritten(then: () => void): void {
    if (this.queuedBytes === 0) {
      then();
      return;
    }
    const isHeld = this.#heldBytes > 0;
    this.#waiting.push({ write: !isHeld && this.#isLastCounted ? this.#writes : this.#writes + 1, then });
    if (!isHeld && !this.#isLastCounted) this.#write(nothing, { counted: true });
  }

  flush(): void {
    if (this.#heldBytes === 0) return;
    this.#seal();
    const pieces = this.#held;
    this.#held = [];
    this.#heldBytes = 0;
    const last = pieces.length - 1;
    if (last > 0) {
      this.#socket.cork();
      for (let i = 0; i < last; i++) this.#socket.write(pieces[i]);
    }
    const isAwaited = (this.#waiting.at(-1)?.write ?? 0) > this.#writes;
    this.#write(pieces[last] as Uint8Array, { counted: isAwaited || (pieces[last] as Uint8Array).length > COPIED_BYTES_MAX });
    if (last > 0) this.#socket.uncork();
  }

  /** Discards everything unwritten. */
  drop(): void {
    this.#held = [];
    this.#heldBytes = 0;
    this.#from = this.#used;
    for (const { then } of this.#waiting.splice(0)) then();
  }

  #write(piece: Uint8Array, { counted }: { counted: boolean }): void {
    this.#isLastCounted = counted;
    if (counted) this.#writes++;
    this.#socket.write(piece, counted ? this.#onWritten : undefined);
  }

  #seal(): void {
    if (this.#used === this.#from) return;
    this.#held.push(this.#slab.subarray(this.#from, this.#used));
    this.#from = this.#used;
  }

  /**
   * Replaces the slab. The new one is twice as large if the unwritten bytes would fill most of the old one, because
   * then much is sent at once.
   */
  #renew(pieceBytes: number): void {
    this.#seal();
    const isSmall = this.#heldBytes > this.#slab.length / 2;
    const bytes = Math.max(this.#slab.length * (isSmall ? 2 : 1), pieceBytes);
    this.#slab = Buffer.allocUnsafeSlow(Math.min(bytes, SLAB_BYTES_MAX));
    this.#from = 0;
    this.#used = 0;
  }
}
