import { once } from "node:events";
import type { AddressInfo, Server } from "node:net";
import { CaissonError, type ErrorCode } from "../../contract/error/error.ts";

const codes: Readonly<Record<string, ErrorCode>> = {
  EADDRINUSE: "conflict",
  EACCES: "denied",
  EADDRNOTAVAIL: "invalid",
  ENOTFOUND: "invalid",
};

/**
 * Starts to listen and returns the port. Throws `conflict` for a port in use, `denied` for one that needs root,
 * `invalid` for an address that is not this machine's.
 */
export async function listenOn(server: Server, at: { host: string; port: number }): Promise<number> {
  try {
    server.listen({ host: at.host, port: at.port });
    await once(server, "listening");
  } catch (error) {
    const { code = "", message } = error as NodeJS.ErrnoException;
    throw new CaissonError(codes[code] ?? "internal", `cannot listen on ${at.host}:${at.port}: ${message}`, {
      cause: error,
      hint: code === "EADDRINUSE" ? "Another program uses that port; choose another one." : "Choose another address or port.",
    });
  }
  return (server.address() as AddressInfo).port;
}
