import { request as ask, createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { SandboxId } from "../../contract/ids.ts";
import { shortSocketPath } from "../../lib/short-socket-path.ts";
import type { InboundConnection } from "../../sandbox/sandbox.ts";

/** The part of the station that programs in a sandbox may reach. */
export interface StationRelay {
  handle(connection: InboundConnection): void;
  close(): Promise<void>;
}

const CONNECTIONS_MAX = 32;
const ANSWER_MS = 60_000;
const HEADER_BYTES_MAX = 8 * 1024;
/** The headers of a request and of an answer that are passed on. The relay sets all others itself. */
const REQUEST_HEADERS = ["authorization", "content-type", "content-length"] as const;
const ANSWER_HEADERS = ["content-type", "content-length", "retry-after"] as const;

/** The only allowed calls. We match them exactly, so that no path or header from a program can lead anywhere else. */
const calls: readonly { method: string; path: RegExp }[] = [
  { method: "POST", path: /^\/v1\/inside\/(?:events|messages|heartbeat)$/ },
  { method: "PUT", path: /^\/v1\/inside\/artifacts\/[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$/ },
];

/**
 * An HTTP server for connections that arrive as streams. It rebuilds each call on the station's socket for sandboxes,
 * which requires a sandbox token, and states which sandbox the call is from.
 */
export function createStationRelay(options: { sandbox: SandboxId; socketPath: string }): StationRelay {
  const open = new Set<InboundConnection["stream"]>();
  let closed = false;
  const server = createServer({ requestTimeout: 0, headersTimeout: 0, keepAliveTimeout: 0, maxHeaderSize: HEADER_BYTES_MAX }, (from, to) =>
    relay(from, to, options),
  );
  server.on("clientError", (_error, stream) => stream.destroy());
  return {
    handle({ stream }) {
      stream.on("error", () => undefined);
      if (closed || open.size >= CONNECTIONS_MAX) return void stream.destroy();
      open.add(stream);
      stream.once("close", () => open.delete(stream));
      server.emit("connection", stream);
    },
    async close() {
      closed = true;
      for (const stream of open) stream.destroy();
    },
  };
}

function relay(from: IncomingMessage, to: ServerResponse, { sandbox, socketPath }: { sandbox: SandboxId; socketPath: string }): void {
  const { method = "", url = "" } = from;
  if (!calls.some((call) => call.method === method && call.path.test(url))) {
    refuse(to, { status: 404, code: "not_found", detail: "the station has only four calls for programs in a sandbox", hint: ABOUT });
    return;
  }
  const { path, close } = shortSocketPath(socketPath);
  const headers: Record<string, string> = { host: "station", "caisson-sandbox": sandbox };
  for (const name of REQUEST_HEADERS) if (typeof from.headers[name] === "string") headers[name] = from.headers[name];
  const passing = ask({ socketPath: path, path: url, method, headers, timeout: ANSWER_MS });
  passing.on("socket", (socket) => socket.once("connect", close));
  passing.on("response", (answer) => {
    const passed = ANSWER_HEADERS.flatMap((name) => (answer.headers[name] === undefined ? [] : [[name, answer.headers[name]] as const]));
    to.writeHead(answer.statusCode ?? 502, Object.fromEntries(passed));
    answer.pipe(to);
  });
  passing.on("timeout", () => passing.destroy());
  passing.on("error", () => {
    close();
    if (to.headersSent) return void to.destroy();
    refuse(to, {
      status: 503,
      code: "unavailable",
      detail: "no station is running",
      hint: "The sandbox's owner can start one: caisson up",
    });
  });
  from.pipe(passing);
  to.on("close", () => passing.destroy());
}

const ABOUT = "POST /v1/inside/events, /v1/inside/messages, /v1/inside/heartbeat; PUT /v1/inside/artifacts/NAME";

function refuse(to: ServerResponse, problem: { status: number; code: string; detail: string; hint: string }): void {
  to.writeHead(problem.status, { "content-type": "application/problem+json", connection: "close" });
  to.end(JSON.stringify(problem));
}
