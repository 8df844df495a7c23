import { Duplex } from "node:stream";
import { CaissonError } from "../../contract/error.ts";
import { ByteSink } from "./byte-sink.ts";
import { STREAM_WINDOW } from "./byte-source.ts";
import { encodeFrame, frameCode, frameName, protocolError } from "./frame.ts";
import { errorFromGuest } from "./guest-error.ts";
import type { Link, StreamHandler } from "./link.ts";
import { decodeCredit, encodeCredit } from "./raw.ts";
import { openWith } from "./request.ts";
import { ownIfSmall } from "./slab-reader.ts";

const CREDIT_BATCH_BYTES = 65_536;

/** Who waits for the answer to a CONNECT. */
interface Opening {
  resolve: (stream: Duplex) => void;
  reject: (error: CaissonError) => void;
}

/** A connection to a port on the sandbox's loopback. */
export function connectPort(link: Link, port: number): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    const connecting = new PortStream(link, { port, opening: { resolve, reject } });
    connecting.begin(openWith(link, connecting, "CONNECT", { port }));
  });
}

/** A connection that something inside made and the guest opened a stream for. Throws `protocol` for a stream that cannot be. */
export function acceptPort(link: Link, { port, stream }: { port: number; stream: number }): Duplex {
  const accepted = new PortStream(link, { port, opening: null });
  accepted.begin(stream);
  link.adopt(stream, accepted);
  // Whoever is inside may break it at any time; that nobody listens for it must not be this process's end.
  accepted.on("error", () => {});
  return accepted;
}

/** `end()` is a half-close, as with a socket; `destroy()` gives the connection up. */
class PortStream extends Duplex implements StreamHandler {
  readonly #link: Link;
  readonly #port: number;
  readonly #sink: ByteSink;
  #stream = 0;
  /** Null once bytes may flow. */
  #opening: Opening | null;
  #allowance = STREAM_WINDOW;
  #consumed = 0;
  #sentEnd = false;
  #gotEnd = false;

  constructor(link: Link, options: { port: number; opening: Opening | null }) {
    super({ allowHalfOpen: true });
    this.#link = link;
    this.#port = options.port;
    this.#opening = options.opening;
    this.#sink = new ByteSink(link);
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
    if (this.push(ownIfSmall(data))) this.#grant();
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
    const rest = this.#sink.send(chunk);
    if (rest === undefined) done();
    else rest.then(() => done(), done);
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#sentEnd = true;
    this.#sink.end();
    if (this.#gotEnd) this.#link.retire(this.#stream);
    done();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#sink.fail(new CaissonError("gone", `the connection to port ${this.#port} was closed`));
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

  /** Credit is given when the bytes were read, not when they came: a slow reader slows the sender down. */
  #grant(): void {
    if (this.#consumed < CREDIT_BATCH_BYTES || this.#gotEnd) return;
    this.#allowance += this.#consumed;
    this.#link.send(encodeCredit(this.#stream, this.#consumed));
    this.#consumed = 0;
  }
}
