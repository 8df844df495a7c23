import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { TLSSocket } from "node:tls";
import type { Authority } from "./authority.ts";

/**
 * Starts a loopback server for tests that answers every request with `hello`. The authority issues its certificate for
 * the server name in the ClientHello, or for 127.0.0.1.
 */
export async function serveWithAuthority(authority: Authority): Promise<{ port: number; [Symbol.asyncDispose](): Promise<void> }> {
  const sockets = new Set<Socket>();
  const server = createServer((raw) => {
    sockets.add(raw.on("error", () => {}));
    const socket = new TLSSocket(raw, {
      isServer: true,
      secureContext: authority.contextFor("127.0.0.1"),
      SNICallback: (name, done) => done(null, authority.contextFor(name)),
    });
    socket.on("error", () => raw.destroy());
    socket.once("data", () => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nhello\n"));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, "close");
    },
  };
}
