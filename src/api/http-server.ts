import type { createServer, IncomingMessage, RequestListener, Server } from "node:http";
import type { createServer as createTlsServer } from "node:https";
import { createAdaptorServer, type HttpBindings } from "@hono/node-server";
import type { Arrival } from "./admit.ts";
import type { App } from "./app.ts";
import type { ServePreviews } from "./previews/serve-previews.ts";
import { sendAnswer } from "./send-answer.ts";
import type { Upgrades } from "./streams/upgrades.ts";

const HEADERS_MS = 5_000;
const KEEP_ALIVE_MS = 5_000;
const CONNECTIONS_MAX = 1024;
/** Read and written ahead on a connection: Node's 64 KiB are one piece of a file, and each would be waited for. */
const AHEAD_BYTES = 256 * 1024;

/** What answers: requests, and those that want a WebSocket. */
export interface Faces {
  app: App;
  upgrades: Upgrades;
}

interface HttpServer {
  server: typeof createServer | typeof createTlsServer;
  arrivalOf: (incoming: IncomingMessage) => Arrival;
  /** Where previews have names of their own: what comes by one is theirs. */
  previews?: ServePreviews | null;
  tls?: { cert: string; key: string; minVersion: "TLSv1.2" };
}

/** One way in, which does not listen yet. */
export function serverOf({ app, upgrades }: Faces, { server: create, arrivalOf, previews = null, tls }: HttpServer): Server {
  const timeouts = { headersTimeout: HEADERS_MS, requestTimeout: 0, keepAliveTimeout: KEEP_ALIVE_MS, connectionsCheckingInterval: 1000 };
  const server = createAdaptorServer({
    overrideGlobalObjects: false,
    createServer: ((settings: object, listener: RequestListener) =>
      (create as typeof createServer)(settings, (incoming, outgoing) => {
        if (previews?.takes(incoming)) void previews.answer(incoming, outgoing);
        else listener(incoming, outgoing);
      })) as typeof createServer,
    serverOptions: { ...timeouts, ...tls, highWaterMark: AHEAD_BYTES },
    async fetch(request, env) {
      const { incoming, outgoing } = env as HttpBindings;
      const answer = await app.fetch(request, { arrival: arrivalOf(incoming), body: incoming });
      return sendAnswer(answer, outgoing);
    },
  }) as Server;
  server.maxConnections = CONNECTIONS_MAX;
  server.on("upgrade", (request, socket, head) => {
    if (previews?.takes(request)) void previews.upgrade(request, socket, head);
    else void upgrades.accept(request, socket, head, arrivalOf(request));
  });
  return server;
}
