import type { Duplex } from "node:stream";
import { STREAM_WINDOW } from "../../sandbox/guest/byte-source.ts";
import { answers, decodeFields, shapes } from "../../sandbox/guest/fields.ts";
import type { FrameName } from "../../sandbox/guest/frame.ts";
import { ACCEPTED_WINDOW } from "../../sandbox/guest/port.ts";
import { failure } from "./failure.ts";
import { cut, u32, type Wire } from "./file-requests.ts";

/** Handles connections to programs in memory, and those from programs to the host. */
export function portRequests(wire: Wire): Partial<Record<FrameName, (stream: number, payload: Buffer) => void>> {
  const { machine } = wire;
  return {
    CONNECT(stream, payload) {
      const connection = machine.connect(decodeFields("CONNECT", shapes.CONNECT, payload).port);
      if (connection === null) throw failure("refused", "nothing listens there");
      wire.ok(stream, answers.nothing, {});
      carry(wire, stream, connection, STREAM_WINDOW);
    },
    LISTEN(stream, payload) {
      const { port } = decodeFields("LISTEN", shapes.LISTEN, payload);
      const giveUp = machine.claim(port, (connection) => {
        const accepted = wire.nextAccepted();
        wire.sendAccepted(accepted, { port });
        carry(wire, accepted, connection, ACCEPTED_WINDOW);
      });
      if (giveUp === null) throw failure("exists", `port ${port} is in use`);
      wire.open(stream, { onFrame: (type) => type === "CANCEL" && giveUp(), onCancel: giveUp });
      wire.ok(stream, answers.nothing, {});
    },
  };
}

/**
 * Carries a connection to a program in memory. We count the host's credit; the stream handles the program's
 * back-pressure.
 */
function carry(wire: Wire, stream: number, connection: Duplex, window: number): void {
  let credit = window;
  let paused: Buffer[] = [];
  let isOpen = true;
  let state: "open" | "ending" | "ended" = "open";
  const flush = () => {
    while (paused[0] !== undefined && credit >= paused[0].length) {
      const data = paused.shift() as Buffer;
      credit -= data.length;
      wire.send("DATA", stream, data);
    }
    if (paused.length > 0) return;
    if (state === "open") connection.resume();
    else if (state === "ending") {
      state = "ended";
      wire.send("END", stream);
    }
  };
  connection.on("data", (data: Buffer) => {
    paused.push(...cut([data]));
    connection.pause();
    flush();
  });
  connection.on("end", () => {
    state = "ending";
    if (isOpen) flush();
  });
  connection.on("error", () => {});
  connection.on("close", () => {
    if (!isOpen || (connection.readableEnded && connection.writableFinished)) return;
    isOpen = false;
    wire.fail(stream, failure("io", "the connection was reset"));
  });
  const giveUp = () => {
    isOpen = false;
    paused = [];
    connection.destroy();
  };
  wire.open(stream, {
    onFrame(type, payload) {
      if (type === "DATA") connection.write(Buffer.from(payload), () => isOpen && wire.send("CREDIT", stream, u32(payload.length)));
      else if (type === "END") connection.end();
      else if (type === "CREDIT") {
        credit += payload.readUInt32LE(0);
        flush();
      } else if (type === "CANCEL") giveUp();
    },
    onCancel: giveUp,
  });
}
