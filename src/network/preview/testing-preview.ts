import { once } from "node:events";
import { type AddressInfo, connect, type Server, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { CaissonError } from "../../contract/error/error.ts";

/** Replaces a sandbox in tests: its ports are this machine's. */
export async function connectLocal(port: number): Promise<Duplex> {
  const socket = connect({ host: "127.0.0.1", port, allowHalfOpen: true });
  try {
    await once(socket, "connect");
  } catch (error) {
    throw new CaissonError("unavailable", `nothing listens on port ${port}`, { cause: error });
  }
  return socket;
}

/** Listens on a free port until it is disposed of, which also ends its connections. */
export async function serveLocal(server: Server): Promise<{ port: number } & AsyncDisposable> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => sockets.add(socket.on("error", () => {})));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** Sends these bytes and returns everything that comes back until the other side closes. */
export async function exchange(port: number, text: string): Promise<string> {
  const socket = connect({ host: "127.0.0.1", port });
  socket.write(text);
  const parts: Buffer[] = [];
  for await (const part of socket) parts.push(part as Buffer);
  return Buffer.concat(parts).toString("latin1");
}
