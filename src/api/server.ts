import { chmod } from "node:fs/promises";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { createAdaptorServer, type HttpBindings } from "@hono/node-server";
import type { StationStatus } from "../contract/api/station-routes.ts";
import { CaissonError } from "../contract/error.ts";
import type { OwnerView } from "../contract/owner.ts";
import { isErrno } from "../lib/is-errno.ts";
import { shortSocketPath } from "../lib/short-socket-path.ts";
import type { Station } from "../station/station.ts";
import { type App, type Arrival, createApp } from "./app.ts";
import { type Authenticate, isLoopback } from "./gate.ts";
import { takePlace } from "./one-station.ts";
import { createOpenRequests } from "./open-requests.ts";

const HEADERS_MS = 5_000;
const KEEP_ALIVE_MS = 5_000;
const CONNECTIONS_MAX = 1024;
/** How long requests that are under way may take once the server ends, and how long those that were told to end. */
const GRACE_MS = 5_000;
const ABORT_MS = 1_000;

export interface ServerOptions {
  /** The station as a caller sees it. */
  stationFor(view: OwnerView): Station;
  authenticate: Authenticate;
  stateDir: string;
  version: string;
  /** A loopback address. */
  listenHost: string;
  /** 0: any that is free. */
  port: number;
  onDefect: (error: unknown) => void;
}

export interface RunningServer extends AsyncDisposable {
  readonly status: StationStatus;
  readonly socketPath: string;
  /** Resolves when somebody asked over the API that it end. */
  readonly askedToEnd: Promise<void>;
  /** Takes no more requests, lets those under way finish for a few seconds, and ends. Idempotent. */
  close(): Promise<void>;
}

/**
 * The station on a port of this machine, for those with a token, and on a socket in the state folder, for its owner.
 * Throws `conflict` for a second one on the same state folder or a port that is taken, `invalid` for an address that
 * others could reach.
 */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const host = loopbackAddress(options.listenHost);
  const place = await takePlace(options.stateDir);
  const requests = createOpenRequests();
  const asked = Promise.withResolvers<void>();
  const startedAt = new Date().toISOString();
  let url = "";
  const status = (): StationStatus => ({ version: options.version, pid: process.pid, startedAt, url, requests: requests.count() });
  const app = createApp({
    ...options,
    requests,
    server: {
      status,
      shutDown: () => asked.resolve(),
      openApi: async () => (await import("./openapi.ts")).openApiDocument(),
    },
  });
  const byPort = serverOf(app, (address) => ({ via: "loopback", address }));
  const bySocket = serverOf(app, () => ({ via: "socket" }));
  const servers = [byPort, bySocket];
  try {
    url = await listenOnPort(byPort, { host, port: options.port });
    await listenOnSocket(bySocket, place.socketPath);
  } catch (error) {
    for (const server of servers) server.close();
    await place[Symbol.asyncDispose]();
    throw error;
  }
  let closing: Promise<void> | undefined;
  const close = async () => {
    const closed = Promise.all(servers.map(closedServer));
    requests.endStreams();
    if (!(await inTime(requests.idle(), GRACE_MS))) {
      requests.abortAll();
      await inTime(requests.idle(), ABORT_MS);
    }
    for (const server of servers) server.closeIdleConnections();
    if (!(await inTime(closed, ABORT_MS))) for (const server of servers) server.closeAllConnections();
    await place[Symbol.asyncDispose]();
  };
  const closeOnce = () => {
    closing ??= close();
    return closing;
  };
  return {
    get status() {
      return status();
    },
    socketPath: place.socketPath,
    askedToEnd: asked.promise,
    close: closeOnce,
    [Symbol.asyncDispose]: closeOnce,
  };
}

function loopbackAddress(listenHost: string): string {
  const address = listenHost === "localhost" ? "127.0.0.1" : listenHost;
  if (isLoopback(address)) return address;
  throw new CaissonError(
    "invalid",
    `the station does not listen on ${JSON.stringify(listenHost)}: others could reach it, and nothing would encrypt the tokens`,
    {
      hint: "Listen on 127.0.0.1, and reach it from elsewhere through an SSH tunnel.",
    },
  );
}

function serverOf(app: App, arrivalOf: (address: string) => Arrival): Server {
  const server = createAdaptorServer({
    overrideGlobalObjects: false,
    serverOptions: { headersTimeout: HEADERS_MS, requestTimeout: 0, keepAliveTimeout: KEEP_ALIVE_MS, connectionsCheckingInterval: 1000 },
    fetch: (request, env) => app.fetch(request, arrivalOf((env as HttpBindings).incoming.socket.remoteAddress ?? "unknown")),
  }) as Server;
  server.maxConnections = CONNECTIONS_MAX;
  return server;
}

async function listenOnPort(server: Server, { host, port }: { host: string; port: number }): Promise<string> {
  try {
    await listening(server, () => server.listen({ host, port }));
  } catch (cause) {
    if (isErrno(cause, "EADDRINUSE")) {
      throw new CaissonError("conflict", `port ${port} of ${host} is taken`, { cause, hint: "Choose another one: caisson up --port PORT" });
    }
    if (!isErrno(cause, "EACCES")) throw cause;
    throw new CaissonError("denied", `port ${port} may not be used`, { cause, hint: "Choose one above 1023: caisson up --port PORT" });
  }
  const { address, port: taken, family } = server.address() as AddressInfo;
  return `http://${family === "IPv6" ? `[${address}]` : address}:${taken}`;
}

async function listenOnSocket(server: Server, socketPath: string): Promise<void> {
  const { path, close } = shortSocketPath(socketPath);
  try {
    await listening(server, () => server.listen({ path }));
    await chmod(socketPath, 0o600);
  } finally {
    close();
  }
}

function listening(server: Server, listen: () => void): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.once("listening", () => {
      server.off("error", reject);
      resolve();
    });
    listen();
  });
}

function closedServer(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()));
}

async function inTime(work: Promise<unknown>, timeoutMs: number): Promise<boolean> {
  const timeout = Promise.withResolvers<boolean>();
  const timer = setTimeout(() => timeout.resolve(false), timeoutMs);
  try {
    return await Promise.race([work.then(() => true), timeout.promise]);
  } finally {
    clearTimeout(timer);
  }
}
