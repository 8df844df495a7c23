import type { PortServerMessage } from "../contract/api/streams.ts";
import { CaissonError } from "../contract/error/error.ts";
import { ignore } from "../lib/failures.ts";
import { createItemQueue, type ItemQueue } from "./item-queue.ts";
import { createPacedInput } from "./paced-input.ts";
import type { Connection } from "./request.ts";
import { whileAlive } from "./sign-of-life.ts";
import { openStream, type StreamSocket } from "./stream-socket.ts";
import { SILENCE_MS, type SilenceWatch, watchSilence } from "./watch-silence.ts";

const WINDOW_BYTES = 256 * 1024;
const TELL_BYTES = WINDOW_BYTES / 4;

/** A TCP connection to a port on a sandbox's loopback. */
export interface PortConnection {
  /** For one consumer; a slow one slows the other side down. Throws `lost` if the connection was reset. */
  readonly incoming: AsyncIterable<Uint8Array>;
  /** Resolves when the station has received the bytes. */
  write(data: Uint8Array): Promise<void>;
  /** Ends this direction after all writes; the other direction stays open. */
  end(): Promise<void>;
  /** Resets the connection. Idempotent. */
  reset(): void;
  /** Resolves when both directions have ended, with null or the error that ended them. Never rejects. */
  readonly closed: Promise<CaissonError | null>;
}

/** Throws `not_found`, and `unavailable` if nothing listens on the port. */
export async function connectPort(
  to: Connection,
  { sandbox, port, signal }: { sandbox: string; port: number; signal?: AbortSignal },
): Promise<PortConnection> {
  const connected = Promise.withResolvers<boolean>();
  const fallen = Promise.withResolvers<{ error: CaissonError }>();
  let silence: SilenceWatch | null = null;
  const input = createPacedInput();
  let wasReset = false;
  let takenBytes = 0;
  let toldBytes = 0;
  let socket: StreamSocket | null = null;
  const incoming: ItemQueue<Uint8Array> = createItemQueue((data) => {
    takenBytes += data.length;
    if (takenBytes - toldBytes < TELL_BYTES) return;
    toldBytes = takenBytes;
    socket?.send({ type: "taken", bytes: takenBytes });
  });
  const opened = await openStream(to, "ports.connect", {
    params: { sandbox, port: String(port) },
    query: { windowBytes: WINDOW_BYTES },
    signal,
    onMessage(raw) {
      const message = raw as PortServerMessage;
      silence?.reset();
      if (message.type === "connected") connected.resolve(message.answersPings === true);
      else if (message.type === "taken") input.acknowledge(message.bytes);
      else if (message.type === "end") incoming.end();
      else if (message.type === "reset") wasReset = true;
    },
    onBytes(data) {
      silence?.reset();
      incoming.push(data);
    },
  });
  socket = opened;
  const closed = Promise.race([opened.closed, fallen.promise]).then(({ error }) => {
    socket = null;
    const why = wasReset ? new CaissonError("lost", `the connection to port ${port} was reset`) : error;
    input.fail(why ?? new CaissonError("gone", `the connection to port ${port} has ended`));
    incoming.end(why ?? undefined);
    return why;
  });
  const failed = closed.then((error) => {
    throw error ?? new CaissonError("unavailable", "the station closed the connection");
  });
  void ignore(failed, "awaited in the race below");
  const answersPings = await whileAlive(to, () => Promise.race([connected.promise, failed])).catch((error: unknown) => {
    opened.abandon();
    throw error;
  });
  if (answersPings) {
    silence = watchSilence(opened, to.silenceMs ?? SILENCE_MS);
    void silence.fallen.then(fallen.resolve);
  }
  input.connect((chunk) => opened.sendBytes(chunk), 0);
  return {
    incoming,
    write: (data) => input.write(data),
    async end() {
      await input.flush();
      socket?.send({ type: "end" });
    },
    reset: () => opened.close(),
    closed,
  };
}
