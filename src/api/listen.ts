import { chmod } from "node:fs/promises";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { CaissonError } from "../contract/error/error.ts";
import { isErrno } from "../lib/failures.ts";
import { shortSocketPath } from "../lib/short-socket-path.ts";
import type { Exposure } from "./exposure.ts";

const GUARD_ENDS_MS = 3_000;

/**
 * Listens, and returns the URL for other machines. If the last station was killed, waits for its stall guard to notice
 * and free the port. Throws `conflict` for a port in use, `denied`.
 */
export async function listenOnPort(
  server: Server,
  { exposure, port, wasKilled }: { exposure: Exposure; port: number; wasKilled: boolean },
): Promise<string> {
  const { host, scheme, publicUrl } = exposure;
  try {
    await listeningWithin(server, { waitMs: wasKilled ? GUARD_ENDS_MS : 0, listen: () => server.listen({ host, port }) });
  } catch (cause) {
    if (isErrno(cause, "EADDRINUSE")) {
      throw new CaissonError("conflict", `port ${port} on ${host} is in use`, {
        cause,
        hint: "Choose another one: caisson up --port PORT",
      });
    }
    if (!isErrno(cause, "EACCES")) throw cause;
    throw new CaissonError("denied", `no permission to listen on port ${port}`, {
      cause,
      hint: "Choose one above 1023: caisson up --port PORT",
    });
  }
  const { address, port: boundPort, family } = server.address() as AddressInfo;
  return publicUrl ?? `${scheme}://${family === "IPv6" ? `[${address}]` : address}:${boundPort}`;
}

export async function listenOnSocket(server: Server, socketPath: string): Promise<void> {
  const { path, close } = shortSocketPath(socketPath);
  try {
    await listening(server, () => server.listen({ path }));
    await chmod(socketPath, 0o600);
  } finally {
    close();
  }
}

async function listeningWithin(server: Server, { waitMs, listen }: { waitMs: number; listen: () => void }): Promise<void> {
  for (const end = performance.now() + waitMs; ; await delay(50)) {
    try {
      return await listening(server, listen);
    } catch (error) {
      if (!isErrno(error, "EADDRINUSE") || performance.now() > end) throw error;
    }
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

export function closedServer(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()));
}
