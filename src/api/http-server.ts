import type { createServer, IncomingMessage, RequestListener, Server } from "node:http";
import type { createServer as createTlsServer } from "node:https";
import { createAdaptorServer, type HttpBindings } from "@hono/node-server";
import type { Arrival } from "./admit.ts";
import type { App } from "./app.ts";
import { refuseBroken } from "./overload/refuse-request.ts";
import type { RequestIntake } from "./overload/request-intake.ts";
import type { PortConnection, PortConnections } from "./port-connections.ts";
import type { ServePreviews } from "./previews/serve-previews.ts";
import { sendAnswer } from "./send-answer.ts";
import type { Upgrades } from "./streams/upgrades.ts";

const HEADERS_MS = 5_000;
const HANDSHAKE_MS = 5_000;
const KEEP_ALIVE_MS = 5_000;
/** The limit for a socket in the state folder, which only this machine's user and sandboxes reach. */
const SOCKET_CONNECTIONS_MAX = 1024;
/**
 * The read and write buffer of a connection. Node's default of 64 KiB is one piece of a file, so each piece would wait
 * for the last.
 */
export const AHEAD_BYTES = 256 * 1024;

/** The handlers of requests and of WebSocket upgrades, both behind the intake. */
export interface Faces {
  app: App;
  upgrades: Upgrades;
  intake: RequestIntake;
}

interface HttpServer {
  server: typeof createServer | typeof createTlsServer;
  arrivalOf: (incoming: IncomingMessage) => Arrival;
  /** Serves requests to preview host names, if previews have such names. */
  previews?: ServePreviews | null;
  tls?: { cert: string; key: string; minVersion: "TLSv1.2" };
  /** The connection shares of each address. Only for the port. */
  connections?: PortConnections;
}

/** Creates a server for one entry, without listening. */
export function serverOf({ app, upgrades, intake }: Faces, options: HttpServer): Server {
  const { server: create, arrivalOf, previews = null, tls, connections } = options;
  const timeouts = { headersTimeout: HEADERS_MS, requestTimeout: 0, keepAliveTimeout: KEEP_ALIVE_MS, connectionsCheckingInterval: 1000 };
  const server = createAdaptorServer({
    overrideGlobalObjects: false,
    createServer: ((settings: object, listener: RequestListener) =>
      (create as typeof createServer)(settings, (incoming, outgoing) => {
        const connection = connections?.of(incoming.socket);
        connection?.begin();
        outgoing.once("close", () => connection?.end());
        if (previews?.takes(incoming)) void previews.answer(incoming, outgoing, connection);
        else intake.request(incoming, outgoing, { arrival: arrivalOf(incoming), handle: listener });
      })) as typeof createServer,
    serverOptions: { ...timeouts, ...tls, ...(tls && { handshakeTimeout: HANDSHAKE_MS }), highWaterMark: AHEAD_BYTES },
    async fetch(request, env) {
      const { incoming, outgoing } = env as HttpBindings;
      const arrival = arrivalOf(incoming);
      const answer = await app.fetch(request, { arrival, body: incoming });
      if (arrival.via === "port" && !keepsConnection(answer, arrival)) outgoing.shouldKeepAlive = false;
      return sendAnswer(answer, outgoing);
    },
  }) as Server;
  server.maxConnections = SOCKET_CONNECTIONS_MAX;
  connections?.watch(server);
  server.on("upgrade", (request, socket, head) => {
    const connection = connections?.of(request.socket);
    connection?.begin();
    if (previews?.takes(request)) void previews.upgrade(request, socket, head, connection);
    else {
      const arrival = arrivalOf(request);
      intake.upgrade(request, socket, { arrival, accept: () => upgrades.accept(request, socket, head, arrival) });
    }
  });
  server.on("clientError", refuseBroken);
  server.on("connection", () => intake.reportConnection());
  return server;
}

/** Only callers with a token keep their connection; others lose it with the answer. */
function keepsConnection({ status }: Response, { connection }: { connection?: PortConnection }): boolean {
  return status !== 401 && connection?.staysOpen !== false;
}
