import { Duplex } from "node:stream";
import { CaissonError } from "../../contract/error/error.ts";
import { ByteSink } from "./byte-sink.ts";
import { STREAM_WINDOW } from "./byte-source.ts";
import { encodeFrame, frameCode, frameName, protocolError } from "./frame.ts";
import { errorFromGuest } from "./guest-error.ts";
import type { InboundBudget } from "./inbound-budget.ts";
import type { Link, StreamHandler } from "./link.ts";
import { COPIED_BYTES_MAX } from "./outbox.ts";
import { decodeCredit, encodeCredit } from "./raw.ts";
import { openAndWait } from "./request.ts";
import { ownIfSmall } from "./slab-reader.ts";
import { ANSWER_BOUND } from "./waits.ts";

/**
 * The bytes that either side of a connection from inside may send before it gets credit. The first credit may widen the
 * window to `STREAM_WINDOW`.
 */
export const ACCEPTED_WINDOW = 65_536;
/** The fraction of the window that must be read before we grant credit for it. */
const CREDIT_SHARE = 1 / 4;
/** The bytes that may wait for the socket: two reads of another socket, to write one while the next arrives. */
const WRITABLE_BYTES = 131_072;

/** The caller that waits for the answer to a CONNECT. */
interface Opening {
  resolve: (stream: Duplex) => void;
  reject: (error: CaissonError) => void;
}

/** Opens a connection to a port on the sandbox's loopback. */
export function connectPort(link: Link, port: number): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    const opening: Opening = { resolve: settle(resolve), reject: settle(reject) };
    const connecting = new PortStream(link, { port, opening });
    const what = `connecting to port ${port}`;
    const onGivenUp = (error: CaissonError) => connecting.onLost(error);
    const { stream, wait } = openAndWait(link, connecting, { type: "CONNECT", values: { port }, what, bound: ANSWER_BOUND, onGivenUp });
    connecting.begin(stream);
    function settle<T>(tell: (value: T) => void): (value: T) => void {
      return (value) => {
        wait.end();
        tell(value);
      };
    }
  });
}

/**
 * Accepts a connection that a program inside opened and for which the guest opened a stream. Throws `protocol` for an
 * invalid stream.
 */
export function acceptPort(link: Link, { port, stream, budget }: { port: number; stream: number; budget: InboundBudget }): Duplex {
  const accepted = new PortStream(link, { port, budget });
  accepted.begin(stream);
  link.adopt(stream, accepted);
  budget.opened();
  // Programs inside may break it at any time, and an unhandled error event must not end this process.
  accepted.on("error", () => {});
  return accepted;
}

/** A connection to a port. `end()` is a half-close, as with a socket; `destroy()` drops the connection. */
class PortStream extends Duplex implements StreamHandler {
  readonly #link: Link;
  readonly #port: number;
  readonly #sink: ByteSink;
  #stream = 0;
  /** The pending CONNECT; null as soon as bytes may flow. */
  #opening: Opening | null;
  /** The shared budget of connections from inside; null for other connections. */
  readonly #budget: InboundBudget | null;
  #window: number;
  #allowance: number;
  #consumed = 0;
  #sentEnd = false;
  #gotEnd = false;

  constructor(link: Link, options: { port: number; opening?: Opening; budget?: InboundBudget }) {
    super({ allowHalfOpen: true, writableHighWaterMark: WRITABLE_BYTES });
    this.#link = link;
    this.#port = options.port;
    this.#opening = options.opening ?? null;
    this.#budget = options.budget ?? null;
    this.#window = this.#budget === null ? STREAM_WINDOW : ACCEPTED_WINDOW;
    this.#allowance = this.#window;
    this.#sink = new ByteSink(link, this.#window);
  }

  begin(stream: number): void {
    this.#stream = stream;
    this.#sink.stream = stream;
  }

  onFrame(code: number, payload: Buffer): boolean {
    if (this.#opening !== null) return this.#onFirstFrame(this.#opening, code, payload);
    switch (code) {
      case frameCode.END:
        if (this.#gotEnd) throw protocolError("two ENDs");
        this.#gotEnd = true;
        this.push(null);
        if (this.#sentEnd) this.#link.retire(this.#stream);
        return false;
      case frameCode.CREDIT:
        this.#sink.addCredit(decodeCredit(payload));
        return false;
      case frameCode.ERROR: {
        const error = errorFromGuest(`the connection to port ${this.#port}`, payload);
        this.#sink.fail(error);
        this.#sentEnd = true;
        this.#gotEnd = true;
        this.destroy(error);
        return true;
      }
      default:
        throw protocolError(`${frameName(code)} on a connection to a port`);
    }
  }

  onBulk(code: number, _head: Buffer, data: Buffer): void {
    if (code !== frameCode.DATA || this.#opening !== null) throw protocolError(`${frameName(code)} on a connection to a port`);
    if (this.#gotEnd) throw protocolError("DATA after END");
    if (data.length > this.#allowance) throw protocolError("more DATA than the window allows");
    if (data.length === 0) return;
    this.#allowance -= data.length;
    this.#consumed += data.length;
    const mayHold = this.#budget === null || this.#budget.mayHoldSlabs;
    if (this.push(mayHold ? ownIfSmall(data) : Buffer.from(data))) this.#grant();
  }

  onLost(error: CaissonError): void {
    const opening = this.#opening;
    this.#opening = null;
    this.#sink.fail(error);
    this.#sentEnd = true;
    this.#gotEnd = true;
    if (opening === null) this.destroy(error);
    else opening.reject(error);
  }

  override _read(): void {
    this.#grant();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#written(this.#sink.send(chunk), chunk.length > COPIED_BYTES_MAX, done);
  }

  /** Writes the chunks that queued up while the socket was busy. */
  override _writev(chunks: { chunk: Buffer }[], done: (error?: Error | null) => void): void {
    const send = (from: number): Promise<void> | undefined => {
      for (let i = from; i < chunks.length; i++) {
        const rest = this.#sink.send((chunks[i] as { chunk: Buffer }).chunk);
        if (rest !== undefined) return rest.then(() => send(i + 1));
      }
      return undefined;
    };
    this.#written(send(0), true, done);
  }

  /**
   * Calls `done` for large chunks only when the socket has taken them, because the writer may reuse their memory
   * afterwards.
   */
  #written(rest: Promise<void> | undefined, isLarge: boolean, done: (error?: Error | null) => void): void {
    if (rest !== undefined) rest.then(() => this.#link.whenWritten(done), done);
    else if (isLarge) this.#link.whenWritten(done);
    else done();
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#sentEnd = true;
    this.#sink.end();
    if (this.#gotEnd) this.#link.retire(this.#stream);
    done();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#sink.fail(new CaissonError("gone", `the connection to port ${this.#port} was closed`));
    this.#budget?.closed({ wasWide: this.#window > ACCEPTED_WINDOW });
    if (!this.#sentEnd || !this.#gotEnd) this.#link.cancel(this.#stream, encodeFrame("CANCEL", this.#stream));
    done(error);
  }

  #onFirstFrame(opening: Opening, code: number, payload: Buffer): boolean {
    if (code === frameCode.ERROR) {
      const error = errorFromGuest(`connecting to port ${this.#port}`, payload);
      this.#opening = null;
      this.#sentEnd = true;
      this.#gotEnd = true;
      opening.reject(error);
      return true;
    }
    if (code !== frameCode.OK) throw protocolError(`${frameName(code)} as an answer to CONNECT`);
    this.#opening = null;
    opening.resolve(this);
    return false;
  }

  /** Grants credit when bytes are read, not when they arrive, so a slow reader slows down the sender. */
  #grant(): void {
    if (this.#consumed < this.#window * CREDIT_SHARE || this.#gotEnd || this.destroyed) return;
    let credit = this.#consumed;
    if (this.#window < STREAM_WINDOW && this.#budget?.widen()) {
      credit += STREAM_WINDOW - this.#window;
      this.#window = STREAM_WINDOW;
    }
    this.#allowance += credit;
    this.#consumed = 0;
    this.#link.send(encodeCredit(this.#stream, credit));
  }
}
