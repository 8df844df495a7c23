import { type AddressInfo, createServer, type Socket } from "node:net";
import { Duplex } from "node:stream";
import type { Gateway } from "../../src/network/gateway/gateway-options.ts";

/**
 * Opens a port of the host that leads to a gateway, as the port inside a sandbox does: a connection arrives as a
 * stream, not as a socket.
 */
export async function openGatewayFront(gateway: Gateway): Promise<{ url: string; sockets: Set<Socket> } & AsyncDisposable> {
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    gateway.handle({ stream: bareStream(socket), destination: null });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    sockets,
    async [Symbol.asyncDispose]() {
      await gateway.close();
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Wraps a socket in a stream that only exposes its bytes. */
function bareStream(socket: Socket): Duplex {
  const stream = new Duplex({
    read: () => void socket.resume(),
    write: (chunk, _encoding, done) => void socket.write(chunk, (error) => done(error ?? null)),
    final: (done) => void socket.end(done),
    destroy(error, done) {
      socket.destroy();
      done(error);
    },
  });
  socket.on("data", (data) => {
    if (!stream.push(data)) socket.pause();
  });
  socket.on("end", () => stream.push(null));
  socket.on("error", () => stream.destroy());
  socket.on("close", () => stream.destroy());
  return stream;
}
