import type { CaissonError } from "../../contract/error.ts";
import type { Bytes } from "../sandbox.ts";
import { ByteSink } from "./byte-sink.ts";
import { ByteSource } from "./byte-source.ts";
import { type answers, type Decoded, decodeFields, type Encodable, type Shape, type shapes } from "./fields.ts";
import { encodeFrame, frameCode, frameName, protocolError } from "./frame.ts";
import { errorFromGuest } from "./guest-error.ts";
import type { Link, StreamHandler } from "./link.ts";
import { decodeCredit, encodeCredit } from "./raw.ts";
import { openWith } from "./request.ts";
import { ownIfSmall } from "./slab-reader.ts";

/** `READ` and `TAR_OUT`: the guest says `OK` and then sends bytes. Rejects with the guest's error before the first byte. */
export function download<Name extends "READ" | "TAR_OUT", Answer extends Shape>(
  link: Link,
  request: {
    type: Name;
    values: Encodable<(typeof shapes)[Name]>;
    answer: Answer;
    what: string;
    /** Throws `protocol` errors for an answer that cannot be. */
    check?: (answer: Decoded<Answer>) => void;
  },
): Promise<ByteSource> {
  return new Promise((resolve, reject) => {
    const { type, values, answer, what, check } = request;
    let stream = 0;
    let accepted = false;
    const bytes = new ByteSource({
      grant: (size) => link.send(encodeCredit(stream, size)),
      cancel: () => link.cancel(stream, encodeFrame("CANCEL", stream)),
    });
    const handler: StreamHandler = {
      onFrame(code, payload) {
        if (code === frameCode.ERROR) {
          const error = errorFromGuest(what, payload);
          if (accepted) bytes.fail(error);
          else reject(error);
          return true;
        }
        if (code === frameCode.OK && !accepted) {
          const decoded = decodeFields(`the answer to ${type}`, answer, payload);
          check?.(decoded);
          accepted = true;
          resolve(bytes);
          return false;
        }
        if (!accepted || code !== frameCode.END) throw protocolError(`${frameName(code)} as an answer to ${type}`);
        bytes.end();
        return true;
      },
      onBulk(code, _head, data) {
        if (!accepted || code !== frameCode.DATA) throw protocolError(`${frameName(code)} as an answer to ${type}`);
        bytes.push(ownIfSmall(data));
      },
      onLost(error) {
        if (accepted) bytes.fail(error);
        else reject(error);
      },
    };
    stream = openWith(link, handler, type, values);
  });
}

/** `WRITE` and `TAR_IN`: the bytes follow the request at once, and the answer comes when the guest has dealt with them all. */
export async function upload<Name extends "WRITE" | "TAR_IN", Answer extends typeof answers.written | typeof answers.unpacked>(
  link: Link,
  request: { type: Name; values: Encodable<(typeof shapes)[Name]>; answer: Answer; what: string; data: Bytes },
): Promise<Decoded<Answer>> {
  const { type, values, answer, what, data } = request;
  const sink = new ByteSink(link);
  const { promise, resolve, reject } = Promise.withResolvers<Decoded<Answer>>();
  let sent = false;
  let interrupt: ((error: CaissonError) => void) | null = null;
  const fail = (error: CaissonError) => {
    sink.fail(error);
    reject(error);
    interrupt?.(error);
  };
  /** A slow source must not hold back the guest's error. */
  const unlessRefused = <T>(work: Promise<T>): Promise<T> =>
    new Promise((resolveWork, rejectWork) => {
      interrupt = rejectWork;
      work.then(resolveWork, rejectWork);
    });
  const handler: StreamHandler = {
    onFrame(code, payload) {
      if (code === frameCode.CREDIT) {
        sink.addCredit(decodeCredit(payload));
        return false;
      }
      if (code === frameCode.OK && sent) resolve(decodeFields(`the answer to ${type}`, answer as Shape, payload) as Decoded<Answer>);
      else if (code === frameCode.ERROR) fail(errorFromGuest(what, payload));
      else throw protocolError(`${frameName(code)} as an answer to ${type}`);
      return true;
    },
    onLost: fail,
  };
  // The answer may come while the bytes are still being sent; nobody waits for it yet then.
  promise.catch(() => {});
  const begin = () => {
    sink.stream = openWith(link, handler, type, values);
  };
  const finish = () => {
    sent = true;
    sink.end();
  };
  if (data instanceof Uint8Array) {
    begin();
    const rest = sink.send(data);
    if (rest === undefined) finish();
    else await rest.then(finish, () => {});
    return promise;
  }
  begin();
  try {
    await sendAll(sink, data, unlessRefused);
  } catch (error) {
    link.cancel(sink.stream, encodeFrame("CANCEL", sink.stream));
    throw error;
  }
  finish();
  return promise;
}

/** Sends until the source ends or the guest has given up. */
async function sendAll(sink: ByteSink, data: AsyncIterable<Uint8Array>, unlessRefused: <T>(work: Promise<T>) => Promise<T>): Promise<void> {
  const source = data[Symbol.asyncIterator]();
  try {
    while (true) {
      const result = await unlessRefused(source.next());
      if (result.done) return;
      await sink.send(result.value);
    }
  } catch (error) {
    // Not awaited: the source may be waiting for something that never comes.
    void Promise.resolve(source.return?.()).catch(() => {});
    throw error;
  }
}
