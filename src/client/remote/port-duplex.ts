import { Duplex } from "node:stream";
import type { PortConnection } from "../port-stream.ts";

/** Converts a connection to a port to a Node stream: `end` is a half-close, `destroy` resets. */
export function portDuplex(connection: PortConnection): Duplex {
  const incoming = connection.incoming[Symbol.asyncIterator]();
  let isReading = false;
  const stream = new Duplex({
    allowHalfOpen: true,
    read() {
      if (isReading) return;
      isReading = true;
      incoming.next().then(
        ({ done, value }) => {
          isReading = false;
          stream.push(done ? null : value);
        },
        (error: Error) => stream.destroy(error),
      );
    },
    write(chunk: Uint8Array, _encoding, callback) {
      connection.write(chunk).then(() => callback(), callback);
    },
    final(callback) {
      connection.end().then(() => callback(), callback);
    },
    destroy(error, callback) {
      connection.reset();
      callback(error);
    },
  });
  void connection.closed.then((error) => {
    if (error !== null) stream.destroy(error);
  });
  return stream;
}
