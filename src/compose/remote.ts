import type { StationTarget } from "../cli/station-target.ts";
import { type Client, connect } from "../client/connect.ts";
import { createRemoteStation, type OpenPorts, type RemoteStation } from "../client/remote/remote-station.ts";
import type { Fetch } from "../client/request.ts";
import type { OpenSocket } from "../client/stream-socket.ts";
import { unixWebSockets } from "../client/unix-web-socket.ts";
import { CaissonError } from "../contract/error/error.ts";
import { PROTOCOL } from "../contract/protocol.ts";
import { defined } from "../lib/defined.ts";
import { ignoring } from "../lib/failures.ts";
import { once } from "../lib/once.ts";
import { isStopped, processStat } from "../lib/process-stat.ts";
import { shortSocketPath } from "../lib/short-socket-path.ts";
import { stationStopped } from "./target.ts";

/** Credentials for a remote station. */
export interface StationAccess {
  token?: string | undefined;
  /** The certificates that the station's own must chain to. */
  ca?: string | undefined;
  /** Aborted when the caller wants to exit. */
  leaving?: AbortSignal | undefined;
}

/** Returns the station at a socket of this machine. `pid` is the station's process. */
export function stationAtSocket(socketPath: string, pid?: number, leaving?: AbortSignal): RemoteStation {
  // The socket's folder stays open: many requests may follow.
  const { path } = shortSocketPath(socketPath);
  const client = connect({
    url: "http://station",
    ...unlessStopped({ fetch: lazyFetch(path), openSocket: unixWebSockets(path) }, pid),
    ...defined({ leaving }),
  });
  return createRemoteStation(client, { openPorts });
}

/** How often to check whether a station that has not answered yet is stopped. */
const STOPPED_LOOK_MS = 1_000;

interface Ways {
  fetch: Fetch;
  openSocket: OpenSocket;
}

/**
 * Fails waiting requests soon after the station's process is stopped. They are not retried: the station may already
 * have begun them.
 */
export function unlessStopped({ fetch, openSocket }: Ways, pid: number | undefined): Ways {
  if (pid === undefined) return { fetch, openSocket };
  const whileWaiting = (onStopped: () => void): (() => void) => {
    const timer = setInterval(
      () => ignoring("the next interval checks again", () => isStopped(processStat(pid))) && onStopped(),
      STOPPED_LOOK_MS,
    );
    return () => clearInterval(timer);
  };
  return {
    async fetch(url, init) {
      const stopped = Promise.withResolvers<never>();
      const answered = whileWaiting(() => stopped.reject(stationStopped(pid)));
      return await Promise.race([fetch(url, init), stopped.promise]).finally(answered);
    },
    openSocket(url, options) {
      const socket = openSocket(url, options);
      const answered = whileWaiting(() => socket.close());
      return Object.defineProperties(socket, { onopen: listenerProperty(answered), onclose: listenerProperty(answered) });
    },
  };
}

/** A listener property whose listeners run after `first`. */
function listenerProperty(first: () => void): PropertyDescriptor {
  let listener: ((event: never) => void) | null = null;
  return {
    get: () => (event: never) => {
      first();
      listener?.(event);
    },
    set: (newListener: typeof listener) => {
      listener = newListener;
    },
  };
}

/** Returns the station at an address. Its first call throws `unsupported` if it uses another protocol version. */
export async function stationAt({ url }: Extract<StationTarget, { kind: "elsewhere" }>, access: StationAccess): Promise<RemoteStation> {
  const bare = await clientAt(url, access);
  const understood = once(() => checkProtocol(bare));
  return createRemoteStation(await clientAt(url, access, understood), { openPorts });
}

/** Each request first awaits `before`. */
export async function clientAt(
  url: string,
  { token, ca, leaving }: StationAccess,
  before: () => Promise<void> = async () => {},
): Promise<Client> {
  if (token === undefined) {
    throw new CaissonError("unauthenticated", `no token for the station at ${url}`, {
      hint: "Set CAISSON_TOKEN, or store a token with: caisson login URL",
    });
  }
  const [{ nodeSockets }, { tlsFetch }] = await Promise.all([
    import("../client/node-sockets.ts"),
    ca === undefined ? { tlsFetch: null } : import("../client/tls-fetch.ts"),
  ]);
  const send: Fetch = tlsFetch === null || ca === undefined ? (address, init) => fetch(address, init) : tlsFetch({ ca });
  return connect({
    url,
    token,
    ...defined({ leaving }),
    async fetch(address, init) {
      await before();
      return send(address, init);
    },
    openSocket: nodeSockets(defined({ ca })),
  });
}

async function checkProtocol(client: Client): Promise<void> {
  const { protocol, version } = await client.status();
  if (protocol === PROTOCOL) return;
  throw new CaissonError("unsupported", `the station has version ${version}, whose protocol differs from this program's`, {
    hint: "Use the station's version of Caisson, or have the station updated.",
  });
}

function lazyFetch(socketPath: string): Fetch {
  return async (url, init) => {
    const { socketFetch } = await import("../client/socket-fetch.ts");
    return socketFetch(socketPath)(url, init);
  };
}

/** The code that listens on this machine loads on first use. */
const openPorts: OpenPorts = {
  preview: async (sandbox, request) => (await import("../station/networks/open-ports.ts")).openPreview(sandbox, request),
  forward: async (sandbox, request) => (await import("../station/networks/open-ports.ts")).openForward(sandbox, request),
};
