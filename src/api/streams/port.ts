import type { Duplex } from "node:stream";
import { FRAME_BYTES_MAX, INPUT_WINDOW_BYTES } from "../../contract/api/stream-paths.ts";
import { PortClientMessage } from "../../contract/api/streams.ts";
import { createCredit, partsWithin } from "./credit.ts";
import { parseMessage, type ServerSocket } from "./server-socket.ts";
import type { ServeStream } from "./stream.ts";

/**
 * Carries bytes both ways, each direction as fast as its reader, until both have ended or one side resets the
 * connection.
 */
export const servePort: ServeStream = async ({ socket, station, params, query, signal, audit }) => {
  await audit("ports.connect");
  await using held = await station.sandboxes.hold(params.sandbox as string, { signal });
  const connection = await held.connect(Number(params.port));
  const broken = Promise.withResolvers<"reset">();
  connection.on("error", () => broken.resolve("reset"));
  connection.on("close", () => {
    if (!connection.readableEnded || !connection.writableFinished) broken.resolve("reset");
  });
  const reset = () => {
    connection.destroy();
    broken.resolve("reset");
  };
  signal.addEventListener("abort", reset, { once: true });
  if (signal.aborted) reset();
  try {
    const credit = createCredit(query.windowBytes as number | undefined, signal);
    void socket.send({ type: "connected", answersPings: true });
    const inward = takeFrom(socket, { connection, onTaken: (bytes) => credit.acknowledge(bytes) });
    const outward = sendTo(socket, { connection, credit }).catch(() => {
      broken.resolve("reset");
      return broken.promise;
    });
    const end = await Promise.race([broken.promise, Promise.all([inward, outward])]);
    if (end === "reset") await socket.send({ type: "reset" });
  } finally {
    signal.removeEventListener("abort", reset);
    connection.destroy();
  }
};

/** Forwards what the client sends. Resolves when the client has ended its direction. */
function takeFrom(socket: ServerSocket, { connection, onTaken }: { connection: Duplex; onTaken: (bytes: number) => void }): Promise<void> {
  const ended = Promise.withResolvers<void>();
  let waitingBytes = 0;
  let takenBytes = 0;
  const onWritten = (bytes: number) => {
    waitingBytes -= bytes;
    takenBytes += bytes;
    void socket.send({ type: "taken", bytes: takenBytes });
    if (waitingBytes <= INPUT_WINDOW_BYTES) socket.resume();
  };
  socket.listen({
    onMessage(raw) {
      const message = parseMessage(PortClientMessage, raw);
      if (message.type === "ping") void socket.send({ type: "pong" });
      else if (message.type === "taken") onTaken(message.bytes);
      else connection.end(() => ended.resolve());
    },
    onBytes(data) {
      if (connection.writableEnded || connection.destroyed) return;
      waitingBytes += data.length;
      if (waitingBytes > INPUT_WINDOW_BYTES) socket.pause();
      connection.write(data, (error) => {
        if (!error) onWritten(data.length);
      });
    },
  });
  return ended.promise;
}

/** Forwards what the program sends. Resolves when the program has ended its direction. */
async function sendTo(
  socket: ServerSocket,
  { connection, credit }: { connection: Duplex; credit: ReturnType<typeof createCredit> },
): Promise<void> {
  for await (const chunk of connection.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    for await (const { part } of partsWithin(chunk, { credit, bytesMax: FRAME_BYTES_MAX })) await socket.sendBytes(part);
  }
  await socket.send({ type: "end" });
}
