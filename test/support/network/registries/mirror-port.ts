import type { LookupFunction } from "node:net";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { duplexPair, pipeline } from "node:stream";
import type { NetworkEventInput } from "../../../../src/network/egress/egress-options.ts";
import { createMirror } from "../../../../src/network/mirror/mirror.ts";
import type { Mirror, MirrorOptions, PackagesOptions } from "../../../../src/network/mirror/mirror-options.ts";

export interface MirrorPort extends AsyncDisposable {
  mirror: Mirror;
  port: number;
  /** The origin for the test's requests. */
  origin: string;
  events: NetworkEventInput[];
}

/** `upstreamUrl` is the server of the registries, and the assumed destination of the port's connections. */
type MirrorPortOptions = PackagesOptions & Pick<MirrorOptions, "registries" | "upstreams"> & { upstreamUrl: string };

/** Resolves every name to this machine. */
export const loopbackLookup: LookupFunction = (_name, { all }, done) =>
  all ? done(null, [{ address: "127.0.0.1", family: 4 }]) : done(null, "127.0.0.1", 4);

/** Starts a mirror on a port of this machine. Its connections are plain streams, like those from a sandbox. */
export async function startMirrorPort(options: MirrorPortOptions): Promise<MirrorPort> {
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    const [outer, inner] = duplexPair();
    sockets.add(socket.once("close", () => sockets.delete(socket)));
    pipeline(socket, outer, socket, () => {
      socket.destroy();
      outer.destroy();
      inner.destroy();
    });
    mirror.handle({ stream: inner, origin: new URL(options.upstreamUrl) });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const origin = `http://127.0.0.1:${port}`;
  const events: NetworkEventInput[] = [];
  const mirror = createMirror({ lookup: loopbackLookup, ...options, emit: (event) => void events.push(event) });
  return {
    mirror,
    port,
    origin,
    events,
    async [Symbol.asyncDispose]() {
      await mirror.close();
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
