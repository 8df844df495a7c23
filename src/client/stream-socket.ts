import type { Problem } from "../contract/api/problem.ts";
import { BEARER_PROTOCOL_PREFIX, closeCodes, STREAM_PROTOCOL, type StreamName, streamPaths } from "../contract/api/stream-paths.ts";
import { CaissonError } from "../contract/error/error.ts";
import { type Connection, call, errorOf, fillPath, queryOf } from "./request.ts";

/** The part of a WebSocket that we use, in browsers and in Node. */
export interface AnySocket {
  binaryType: string;
  onopen: ((event: never) => void) | null;
  onmessage: ((event: never) => void) | null;
  onerror: ((event: never) => void) | null;
  onclose: ((event: never) => void) | null;
  send(data: string | Uint8Array<ArrayBuffer>): void;
  close(code?: number): void;
}

/** Opens a WebSocket: with the global one of browsers and Node, or a custom one. */
export type OpenSocket = (url: string, options: { protocol: string; token: string | undefined }) => AnySocket;

/** How long the station may take to answer. */
const OPEN_MS = 15_000;

export interface StreamSocket {
  send(message: object): void;
  sendBytes(data: Uint8Array): void;
  close(): void;
  /** Closes the socket without ending the stream, which continues over another socket. */
  abandon(): void;
  /** Never rejects. The error is the station's, `unavailable` for a broken connection, or null. */
  readonly closed: Promise<{ error: CaissonError | null }>;
}

export interface StreamOptions {
  params?: Readonly<Record<string, string>>;
  query?: object;
  /** Aborts opening, and later closes the socket. */
  signal?: AbortSignal | undefined;
  onMessage(message: { type: string }): void;
  onBytes?(data: Uint8Array): void;
}

/** Browsers cannot set headers, so the token is a subprotocol, which the station never echoes. */
export const openGlobalSocket: OpenSocket = (url, { protocol, token }) =>
  new WebSocket(url, token === undefined ? [protocol] : [protocol, `${BEARER_PROTOCOL_PREFIX}${token}`]) as unknown as AnySocket;

/** Opens a WebSocket to the station. Throws `unavailable`, `unauthenticated`, `denied`, `busy`, and `cancelled`. */
export async function openStream(to: Connection, name: StreamName, options: StreamOptions): Promise<StreamSocket> {
  const url = `${to.url.replace(/^http/, "ws")}${fillPath(streamPaths[name], options.params ?? {})}${queryOf(options.query)}`;
  if (options.signal?.aborted) throw new CaissonError("cancelled", `${name} was cancelled`);
  const socket = to.openSocket(url, { protocol: STREAM_PROTOCOL, token: to.token });
  socket.binaryType = "arraybuffer";
  const opened = Promise.withResolvers<boolean>();
  const closed = Promise.withResolvers<{ error: CaissonError | null }>();
  let problem: CaissonError | null = null;
  const close = () => socket.close(closeCodes.done);
  const timer = setTimeout(() => opened.resolve(false), OPEN_MS);
  options.signal?.addEventListener("abort", close, { once: true });
  socket.onopen = () => opened.resolve(true);
  socket.onerror = () => opened.resolve(false);
  socket.onclose = ({ code }: { code: number }) => {
    opened.resolve(false);
    options.signal?.removeEventListener("abort", close);
    const broke = () => (code === closeCodes.done ? null : new CaissonError("unavailable", "the connection to the station broke off"));
    closed.resolve({ error: problem ?? broke() });
  };
  socket.onmessage = ({ data }: { data: string | ArrayBuffer }) => {
    if (typeof data !== "string") return options.onBytes?.(new Uint8Array(data));
    const message = JSON.parse(data) as { type: string };
    if (message.type === "problem") problem = errorOf((message as unknown as { problem: Problem }).problem);
    else options.onMessage(message);
  };
  const isOpen = await opened.promise.finally(() => clearTimeout(timer));
  if (!isOpen || options.signal?.aborted) {
    close();
    throw await whyNotOpened(to, name, options.signal);
  }
  return {
    send: (message) => socket.send(JSON.stringify(message)),
    sendBytes: (data) => socket.send(data as Uint8Array<ArrayBuffer>),
    close,
    abandon: () => socket.close(closeCodes.abandoned),
    closed: closed.promise,
  };
}

/** Makes an ordinary call to find the reason, which browsers do not reveal for a refused socket. */
async function whyNotOpened(to: Connection, name: StreamName, signal: AbortSignal | undefined): Promise<CaissonError> {
  if (signal?.aborted) return new CaissonError("cancelled", `${name} was cancelled`);
  try {
    await call(to, "station.status", {});
  } catch (error) {
    if (error instanceof CaissonError) return error;
  }
  return new CaissonError("unavailable", `the station at ${to.url} did not open ${name}`);
}
