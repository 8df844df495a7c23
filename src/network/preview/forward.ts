import { createServer, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { listenOn } from "./listen.ts";

export interface ForwardOptions {
  /** Connects to a port inside, such as `sandbox.connect`. */
  connect: (port: number) => Promise<Duplex>;
  /** The port inside. */
  port: number;
  /** The port outside. Absent or 0: any free port. */
  listenPort?: number;
  /** Anyone who can reach this address can reach the port inside. Default: only programs on this machine. */
  listenHost?: string;
  connectionsMax?: number;
  /** Called with the reason if no connection inside could be made. The client is reset. */
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
 * Makes a TCP port of a sandbox available as a port outside. Carries bytes both ways and keeps half-closes; slow
 * readers slow down the other side. Throws `conflict`, `denied`, `invalid`.
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
        // The client gets a reset, as if no process listened on the port outside either.
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

/** Joins both sides. A clean end of one is passed on as an end, a broken connection as a broken one. */
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
    // What it sent before it closed may still be on its way.
    if (!isDone(client)) inside.destroy();
  });
  client.pipe(inside).pipe(client);
}

function isDone(stream: Duplex): boolean {
  return stream.readableEnded && stream.writableFinished;
}
