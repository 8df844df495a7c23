import { createServer, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { listenOn } from "./listen.ts";

export interface ForwardOptions {
  /** A connection to a port inside, such as `sandbox.connect`. */
  connect: (port: number) => Promise<Duplex>;
  /** The port inside. */
  port: number;
  /** The port outside; absent or 0: any that is free. */
  listenPort?: number;
  /** Whoever reaches this address reaches the port inside; default: programs of this machine only. */
  listenHost?: string;
  connectionsMax?: number;
  /** Told why a connection could not be made inside; the client is reset. */
  onRefused?: (error: unknown) => void;
}

export interface Forward {
  readonly port: number;
  readonly listenHost: string;
  readonly listenPort: number;
  connections(): number;
  /** Ends every connection at once and stops listening. Idempotent. */
  close(): Promise<void>;
}

const CONNECTIONS_MAX = 1024;

/**
 * A TCP port of a sandbox as a port outside: bytes both ways, half-closes kept, slow readers slow the other side down.
 * Throws `conflict`, `denied`, `invalid`.
 */
export async function createForward(options: ForwardOptions): Promise<Forward> {
  const { connect, port, listenHost = "127.0.0.1", connectionsMax = CONNECTIONS_MAX } = options;
  const clients = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: true });
  server.maxConnections = connectionsMax;
  server.on("connection", (client) => {
    clients.add(client);
    client.once("close", () => clients.delete(client)).on("error", () => {});
    connect(port).then(
      (inside) => join(client, inside),
      (error: unknown) => {
        // As if nobody listened here, too.
        client.resetAndDestroy();
        options.onRefused?.(error);
      },
    );
  });
  const listenPort = await listenOn(server, { host: listenHost, port: options.listenPort ?? 0 });
  let closed: Promise<void> | undefined;
  return {
    port,
    listenHost,
    listenPort,
    connections: () => clients.size,
    close() {
      closed ??= new Promise((resolve) => {
        server.close(() => resolve());
        for (const client of clients) client.destroy();
      });
      return closed;
    },
  };
}

/** Each side's end is passed on as an end, its breaking as a breaking. */
function join(client: Socket, inside: Duplex): void {
  if (client.destroyed) {
    inside.on("error", () => {}).destroy();
    return;
  }
  inside.on("error", () => client.resetAndDestroy());
  inside.once("close", () => {
    if (!isDone(inside)) client.destroy();
  });
  client.once("close", () => {
    // What it sent before it went may still be on its way.
    if (!isDone(client)) inside.destroy();
  });
  client.pipe(inside).pipe(client);
}

function isDone(stream: Duplex): boolean {
  return stream.readableEnded && stream.writableFinished;
}
