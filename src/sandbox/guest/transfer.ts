import type { CaissonError } from "../../contract/error/error.ts";
import { ignore, succeeds } from "../../lib/failures.ts";
import type { Bytes } from "../sandbox.ts";
import { ByteSink } from "./byte-sink.ts";
import { ByteSource } from "./byte-source.ts";
import { type answers, type Decoded, decodeFields, type Encodable, type Shape, type shapes } from "./fields.ts";
import { encodeFrame, frameCode, frameName, protocolError } from "./frame.ts";
import { errorFromGuest } from "./guest-error.ts";
import type { Link, StreamHandler } from "./link.ts";
import { decodeCredit, encodeCredit } from "./raw.ts";
import { openAndWait } from "./request.ts";
import { ownIfSmall } from "./slab-reader.ts";
import { ANSWER_BOUND, TRANSFER_BOUND } from "./waits.ts";

interface Transfer<Name extends keyof typeof shapes, Answer extends Shape> {
  type: Name;
  values: Encodable<(typeof shapes)[Name]>;
  answer: Answer;
  what: string;
  signal?: AbortSignal | undefined;
}

/**
 * Sends `READ` or `TAR_OUT`: the guest answers `OK`, then sends bytes. Rejects with the guest's error before the first
 * byte.
 */
export function download<Name extends "READ" | "TAR_OUT", Answer extends Shape>(
  link: Link,
  request: Transfer<Name, Answer> & {
    /** Throws `protocol` errors for an invalid answer. */
    check?: (answer: Decoded<Answer>) => void;
  },
): Promise<ByteSource> {
  return new Promise((resolve, reject) => {
    const { type, answer, what, check } = request;
    let accepted = false;
    const bytes = new ByteSource({
      grant: (size) => link.send(encodeCredit(stream, size)),
      cancel: () => {
        wait.end();
        link.cancel(stream, encodeFrame("CANCEL", stream));
      },
      // While the consumer is busy with the bytes it has, the guest's clock does not run.
      onStarved: (is) => wait.guestsTurn(is),
    });
    const fail = (error: CaissonError) => {
      if (accepted) bytes.fail(error);
      else reject(error);
    };
    const handler: StreamHandler = {
      onFrame(code, payload) {
        if (code === frameCode.OK && !accepted) {
          const decoded = decodeFields(`the answer to ${type}`, answer, payload);
          check?.(decoded);
          accepted = true;
          wait.setBound(TRANSFER_BOUND);
          wait.guestsTurn(false);
          resolve(bytes);
          return false;
        }
        wait.end();
        if (code === frameCode.ERROR) fail(errorFromGuest(what, payload));
        else if (accepted && code === frameCode.END) bytes.end();
        else throw protocolError(`${frameName(code)} as an answer to ${type}`);
        return true;
      },
      onBulk(code, _head, data) {
        if (!accepted || code !== frameCode.DATA) throw protocolError(`${frameName(code)} as an answer to ${type}`);
        wait.moved(data.length);
        bytes.push(ownIfSmall(data));
      },
      onLost: fail,
    };
    const { stream, wait } = openAndWait(link, handler, { ...request, bound: ANSWER_BOUND, onGivenUp: fail });
  });
}

/**
 * Sends `WRITE` or `TAR_IN`: the bytes follow the request immediately, and the guest answers after it has processed all
 * of them.
 */
export async function upload<Name extends "WRITE" | "TAR_IN", Answer extends typeof answers.written | typeof answers.unpacked>(
  link: Link,
  request: Transfer<Name, Answer> & { data: Bytes },
): Promise<Decoded<Answer>> {
  const { type, answer, what, data } = request;
  const sink = new ByteSink(link);
  const { promise, resolve, reject } = Promise.withResolvers<Decoded<Answer>>();
  let sent = false;
  let interrupt: ((error: CaissonError) => void) | null = null;
  const fail = (error: CaissonError) => {
    sink.fail(error);
    reject(error);
    interrupt?.(error);
  };
  /** A slow source must not delay the guest's error, and its time does not count against the guest. */
  const unlessRefused = <T>(work: Promise<T>): Promise<T> =>
    new Promise<T>((resolveWork, rejectWork) => {
      interrupt = rejectWork;
      wait.guestsTurn(false);
      work.then(resolveWork, rejectWork);
    }).finally(() => wait.guestsTurn(true));
  const handler: StreamHandler = {
    onFrame(code, payload) {
      if (code === frameCode.CREDIT) {
        const credit = decodeCredit(payload);
        wait.moved(credit);
        sink.addCredit(credit);
        return false;
      }
      wait.end();
      if (code === frameCode.OK && sent) resolve(decodeFields(`the answer to ${type}`, answer as Shape, payload) as Decoded<Answer>);
      else if (code === frameCode.ERROR) fail(errorFromGuest(what, payload));
      else throw protocolError(`${frameName(code)} as an answer to ${type}`);
      return true;
    },
    onLost: fail,
  };
  void ignore(promise, "it is returned below, and the answer may arrive while bytes are still being sent");
  const { stream, wait } = openAndWait(link, handler, { ...request, bound: TRANSFER_BOUND, onGivenUp: fail });
  sink.stream = stream;
  const finish = () => {
    sent = true;
    wait.setBound(ANSWER_BOUND);
    sink.end();
  };
  if (data instanceof Uint8Array) {
    const rest = sink.send(data);
    if (rest === undefined) finish();
    else if (await succeeds(rest, "the answer's promise rejects with the same error")) finish();
    return promise;
  }
  try {
    await sendAll(sink, data, unlessRefused);
  } catch (error) {
    wait.end();
    link.cancel(sink.stream, encodeFrame("CANCEL", sink.stream));
    throw error;
  }
  finish();
  return promise;
}

/** Sends until the source ends or the guest rejects the transfer. */
async function sendAll(sink: ByteSink, data: AsyncIterable<Uint8Array>, unlessRefused: <T>(work: Promise<T>) => Promise<T>): Promise<void> {
  const source = data[Symbol.asyncIterator]();
  try {
    while (true) {
      const result = await unlessRefused(source.next());
      if (result.done) return;
      await sink.send(result.value);
    }
  } catch (error) {
    // Not awaited, because the source may be waiting for something that never comes.
    void ignore(Promise.resolve(source.return?.()), "the first error is thrown");
    throw error;
  }
}
