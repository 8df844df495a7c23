import { connect, type Socket } from "node:net";
import { CaissonError } from "../../../contract/error/error.ts";
import { ignore } from "../../../lib/failures.ts";
import { type DbusCall, type DbusMessage, decodeMessage, encodeCall } from "./dbus-message.ts";
import type { DbusValue } from "./dbus-value.ts";

/** Where a bus, or a service itself, listens: a path, or a name in the abstract namespace after a NUL. */
export interface DbusEndpoint {
  socketPath: string;
  /** Whether the service itself answers, without a bus in between. */
  direct: boolean;
}

/** A short conversation over D-Bus, which must finish before its deadline. */
export interface DbusConnection extends Disposable {
  /** Throws `unavailable` for a refusal (`details.errorName` is the bus's name for it), `timeout`, `protocol`. */
  call(call: DbusCall): Promise<DbusValue[]>;
  /** Resolves to the first matching signal, whether it has arrived already or not. */
  signal(suits: (message: DbusMessage) => boolean): Promise<DbusMessage>;
}

const SIGNALS_KEPT_MAX = 1000;
const GREETING_BYTES_MAX = 1024;

/**
 * Connects and authenticates by uid, which the kernel confirms to the other side. Throws `unavailable`, `timeout`,
 * `protocol`.
 */
export async function connectDbus(options: { endpoint: DbusEndpoint; uid: number; timeoutMs: number }): Promise<DbusConnection> {
  const { endpoint, uid, timeoutMs } = options;
  const socket = connect({ path: endpoint.socketPath });
  const conversation = converse(socket);
  const where = endpoint.socketPath.replace("\0", "@");
  const timer = setTimeout(
    () => conversation.fail(new CaissonError("timeout", `${where} did not answer within ${timeoutMs} ms`)),
    timeoutMs,
  );
  const connection: DbusConnection = {
    ...conversation,
    [Symbol.dispose]() {
      clearTimeout(timer);
      socket.destroy();
    },
  };
  try {
    socket.once("connect", () => socket.write(`\0AUTH EXTERNAL ${Buffer.from(String(uid)).toString("hex")}\r\n`));
    const answer = await conversation.greeting();
    if (!answer.startsWith("OK ")) throw new CaissonError("unavailable", `${where} rejected authentication as uid ${uid}: ${answer}`);
    socket.write("BEGIN\r\n");
    if (!endpoint.direct) {
      await connection.call({ ...busItself, member: "Hello" });
    }
    return connection;
  } catch (error) {
    connection[Symbol.dispose]();
    throw error;
  }
}

export const busItself = {
  destination: "org.freedesktop.DBus",
  path: "/org/freedesktop/DBus",
  interface: "org.freedesktop.DBus",
} as const;

/**
 * Sorts the bytes of a connection into the greeting, answers and signals. After a failure, everything rejects with it.
 */
function converse(socket: Socket) {
  const greeting = Promise.withResolvers<string>();
  const answers = new Map<number, PromiseWithResolvers<DbusValue[]>>();
  const watchers = new Set<{
    suits: (message: DbusMessage) => boolean;
    resolve: (message: DbusMessage) => void;
    reject: (error: unknown) => void;
  }>();
  const signals: DbusMessage[] = [];
  let bytes = Buffer.alloc(0);
  let greeted = false;
  let failure: unknown;
  let serial = 0;

  const fail = (error: unknown) => {
    failure ??= error;
    greeting.reject(failure);
    for (const answer of answers.values()) answer.reject(failure);
    for (const watcher of watchers) watcher.reject(failure);
    socket.destroy();
  };
  const deliver = (message: DbusMessage) => {
    if (message.type === "signal") {
      const watcher = [...watchers].find(({ suits }) => suits(message));
      if (watcher !== undefined) watcher.resolve(message);
      else if (signals.length < SIGNALS_KEPT_MAX) signals.push(message);
      return;
    }
    const answer = answers.get(message.replySerial ?? 0);
    if (message.type === "return") answer?.resolve(message.body);
    if (message.type === "error") answer?.reject(refusal(message));
    answers.delete(message.replySerial ?? 0);
  };
  const digest = () => {
    if (!greeted) {
      const end = bytes.indexOf("\r\n");
      if (end < 0 && bytes.length > GREETING_BYTES_MAX) throw new CaissonError("protocol", "the message bus sent an endless greeting");
      if (end < 0) return;
      greeting.resolve(bytes.toString("latin1", 0, end));
      greeted = true;
      bytes = bytes.subarray(end + 2);
    }
    for (let next = decodeMessage(bytes); next !== null; next = decodeMessage(bytes)) {
      bytes = bytes.subarray(next.length);
      deliver(next.message);
    }
  };
  void ignore(greeting.promise, "awaited by the caller");
  socket.on("data", (chunk) => {
    try {
      bytes = Buffer.concat([bytes, chunk]);
      digest();
    } catch (error) {
      fail(error);
    }
  });
  socket.on("error", (cause) => fail(new CaissonError("unavailable", `cannot reach the message bus: ${cause.message}`, { cause })));
  socket.on("close", () => fail(new CaissonError("unavailable", "the message bus closed the connection")));

  return {
    fail,
    greeting: () => greeting.promise,
    call(call: DbusCall): Promise<DbusValue[]> {
      if (failure !== undefined) return Promise.reject(failure);
      const answer = Promise.withResolvers<DbusValue[]>();
      answers.set(++serial, answer);
      socket.write(encodeCall(call, serial));
      return answer.promise;
    },
    signal(suits: (message: DbusMessage) => boolean): Promise<DbusMessage> {
      const known = signals.find(suits);
      if (known !== undefined) return Promise.resolve(known);
      if (failure !== undefined) return Promise.reject(failure);
      const { promise, resolve, reject } = Promise.withResolvers<DbusMessage>();
      watchers.add({ suits, resolve, reject });
      return promise;
    },
  };
}

function refusal({ errorName, body }: DbusMessage): CaissonError {
  const text = typeof body[0] === "string" ? body[0] : "no reason given";
  return new CaissonError("unavailable", `${text} (${errorName ?? "an error without a name"})`, { details: { errorName } });
}
