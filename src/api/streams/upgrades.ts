import { type IncomingMessage, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import type { WebSocketServer } from "ws";
import { problemOf } from "../../contract/api/problem.ts";
import {
  BEARER_PROTOCOL_PREFIX,
  closeCodes,
  FRAME_BYTES_MAX,
  STREAM_PROTOCOL,
  type StreamName,
  streamPaths,
} from "../../contract/api/stream-paths.ts";
import { type StreamRoute, streamRoutes } from "../../contract/api/stream-routes.ts";
import { CaissonError } from "../../contract/error/error.ts";
import { defined } from "../../lib/defined.ts";
import { decodedOrNull, ignore } from "../../lib/failures.ts";
import type { Admit, Admitted, Arrival } from "../admit.ts";
import { asCaissonError } from "../answer.ts";
import { type AppOptions, ofCaller } from "../app.ts";
import type { SeenCall } from "../audit.ts";
import { checkScope } from "../gate.ts";
import type { OpenRequests, RequestLife } from "../open-requests.ts";
import { readParams, readQuery } from "../read-call.ts";
import { createServerSocket, type ServerSocket } from "./server-socket.ts";
import type { ServeStreams, Stream } from "./stream.ts";

/** The first byte of a frame's header and the largest offset. */
const HEADER_BYTES_MAX = 16;
const PROTOCOLS_MAX = 16;

export interface UpgradesOptions extends Pick<AppOptions, "stationFor" | "onDefect" | "audit"> {
  admit: Admit;
  requests: OpenRequests;
  /** Loads the streams with the first socket. */
  streams: () => Promise<ServeStreams>;
}

export interface Upgrades {
  /** Handles the `upgrade` event of a server. Never rejects. */
  accept(request: IncomingMessage, socket: Duplex, head: Buffer, arrival: Arrival): Promise<void>;
}

/**
 * Serves WebSockets next to the routes, for the same callers. A caller that may not connect gets an HTTP answer. All
 * other problems are sent over the socket, because browsers hide a refused upgrade from their pages.
 */
export function createUpgrades(options: UpgradesOptions): Upgrades {
  let loading: Promise<WebSocketServer> | undefined;
  const webSockets = () => {
    loading ??= import("ws").then(
      ({ WebSocketServer: Server }) =>
        new Server({
          noServer: true,
          clientTracking: false,
          perMessageDeflate: false,
          maxPayload: FRAME_BYTES_MAX + HEADER_BYTES_MAX,
          handleProtocols: (offered) => (offered.has(STREAM_PROTOCOL) ? STREAM_PROTOCOL : false),
        }),
    );
    return loading;
  };
  return {
    async accept(request, socket, head, arrival) {
      // Without a listener, an error would end the process. A `close` event follows it.
      const ignore = () => {};
      socket.on("error", ignore);
      const call = seenUpgrade(request, arrival);
      try {
        const { headers, token, protocols } = headersOf(request);
        const authorization = headers.get("authorization") ?? (token === null ? null : `Bearer ${token}`);
        const admitted = await options.admit({ headers, authorization, arrival });
        call.caller = admitted.caller;
        const stream = findStream(request.url ?? "/");
        // Of the offered protocols, the WebSocket library sees only our own.
        request.headers["sec-websocket-protocol"] = protocols.includes(STREAM_PROTOCOL) ? STREAM_PROTOCOL : undefined;
        if (request.headers["sec-websocket-protocol"] === undefined) delete request.headers["sec-websocket-protocol"];
        const server = await webSockets();
        if (socket.destroyed) return;
        socket.off("error", ignore);
        server.handleUpgrade(request, socket, head, (ws) => {
          void serve(createServerSocket(ws), { ...options, ...stream, admitted, call }).catch(options.onDefect);
        });
      } catch (error) {
        await options.audit.recordFailure(call, error);
        refuse(socket, asCaissonError(error, options.onDefect));
      }
    },
  };
}

interface Found {
  name: StreamName;
  params: Readonly<Record<string, string>>;
  search: URLSearchParams;
}

/** Finds the stream of a path. Throws `not_found`. */
function findStream(target: string): Found {
  const stream = streamAt(target);
  if (stream !== null) return stream;
  throw new CaissonError("not_found", `there is no WebSocket ${target.split("?", 1)[0]?.slice(0, 200)}`, {
    hint: "See the station guide for the available ones.",
  });
}

function streamAt(target: string): Found | null {
  const [path = "", search = ""] = target.split("?", 2);
  for (const name of Object.keys(streamPaths) as StreamName[]) {
    const names: string[] = [];
    const pattern = streamPaths[name].replaceAll(/\{(\w+)\}/g, (_, each: string) => {
      names.push(each);
      return "([^/]+)";
    });
    const values = new RegExp(`^${pattern}$`).exec(path)?.slice(1);
    if (values === undefined) continue;
    return {
      name,
      params: Object.fromEntries(names.map((each, at) => [each, decodedOrNull(values[at] ?? "") ?? values[at] ?? ""])),
      search: new URLSearchParams(search),
    };
  }
  return null;
}

/** An upgrade that only follows events counts as no change. */
function seenUpgrade({ url = "/" }: IncomingMessage, arrival: Arrival): SeenCall {
  const address = arrival.via === "port" ? arrival.address : null;
  const stream = streamAt(url);
  if (stream === null) return { action: null, changes: false, caller: null, address, params: { path: url.split("?", 1)[0] ?? "" } };
  return { action: stream.name, changes: streamRoutes[stream.name].scope !== "read", caller: null, address, params: stream.params };
}

function headersOf({ headers: incoming }: IncomingMessage): { headers: Headers; token: string | null; protocols: string[] } {
  const headers = new Headers();
  for (const name of ["host", "origin", "authorization"] as const) if (incoming[name] !== undefined) headers.set(name, incoming[name]);
  const protocols = (incoming["sec-websocket-protocol"] ?? "").split(",", PROTOCOLS_MAX).map((each) => each.trim());
  const bearer = protocols.find((each) => each.startsWith(BEARER_PROTOCOL_PREFIX));
  return { headers, token: bearer?.slice(BEARER_PROTOCOL_PREFIX.length) ?? null, protocols };
}

function refuse(socket: Duplex, error: CaissonError): void {
  if (socket.destroyed) return;
  const problem = problemOf(error);
  const body = JSON.stringify(problem);
  socket.end(
    `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status] ?? "Error"}\r\nconnection: close\r\n` +
      `content-type: application/problem+json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

type Serving = UpgradesOptions & Found & { admitted: Admitted; call: SeenCall };

async function serve(socket: ServerSocket, options: Serving): Promise<void> {
  const { requests, onDefect } = options;
  const { caller, stillValid } = options.admitted;
  let life: RequestLife | undefined;
  let serving: Promise<void> | undefined;
  try {
    life = requests.begin({
      disconnected: socket.disconnected,
      ...defined({ stillValid, token: caller.kind === "token" ? caller.token : undefined }),
    });
    const ended = whyEnded(life.streamSignal, { socket, requests });
    const start = await prepare(socket, { ...options, signal: life.streamSignal });
    serving = start();
    await Promise.race([serving, socket.failed, ended]);
    await socket.close({ code: requests.isEnding() ? closeCodes.goingAway : closeCodes.done });
  } catch (error) {
    // Starts the cleanup while the client receives the message.
    life?.abort();
    if (!requests.isEnding() && !socket.disconnected.aborted) await options.audit.recordFailure(options.call, error);
    if (requests.isEnding()) await socket.close({ code: closeCodes.goingAway });
    else await socket.close({ error: asCaissonError(error, onDefect) });
    await serving?.catch((reason: unknown) => void asCaissonError(reason, onDefect));
  } finally {
    life?.end();
  }
}

/** Rejects with the problem for the client if something other than the stream ends it. */
function whyEnded(signal: AbortSignal, { socket, requests }: { socket: ServerSocket; requests: OpenRequests }): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>();
  void ignore(promise, "awaited by the caller");
  const tell = () => {
    const isTold = socket.disconnected.aborted || requests.isEnding();
    reject(
      isTold ? new CaissonError("cancelled", "the stream has ended") : new CaissonError("unauthenticated", "the token is no longer valid"),
    );
  };
  if (signal.aborted) tell();
  else signal.addEventListener("abort", tell, { once: true });
  return promise;
}

/** Checks the call and returns a function that serves it. Throws the problem for the client. */
async function prepare(socket: ServerSocket, options: Serving & { signal: AbortSignal }): Promise<() => Promise<void>> {
  const { name, requests, signal } = options;
  const { caller } = options.admitted;
  const route: StreamRoute = streamRoutes[name];
  checkScope(caller, route.scope);
  const params = readParams(route, options.params) as Record<string, string>;
  const query = readQuery(route, options.search) as Record<string, unknown>;
  const serveStream = (await options.streams())[name];
  const { station, owner } = ofCaller(caller, options);
  const seesAll = caller.kind === "socket" || (caller.kind === "token" && caller.token.scope === "admin");
  const view = seesAll ? "everything" : `own ${owner}`;
  const audit: Stream["audit"] = async (action, subject) => {
    options.call.action = action;
    await options.audit.record(options.call, subject);
  };
  return () => serveStream({ socket, caller, station, view, params, query, audit, signal, isEnding: () => requests.isEnding() });
}
