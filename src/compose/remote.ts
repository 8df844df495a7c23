import type { StationTarget } from "../cli/station-target.ts";
import { type Client, connect } from "../client/connect.ts";
import type { Fetch } from "../client/request.ts";
import { createRemoteStation, type OpenPorts, type RemoteStation } from "../client/station/remote-station.ts";
import type { OpenSocket } from "../client/stream-socket.ts";
import { unixWebSockets } from "../client/unix-web-socket.ts";
import { CaissonError } from "../contract/error.ts";
import { PROTOCOL } from "../contract/protocol.ts";
import { defined } from "../lib/defined.ts";
import { isStopped, processStat } from "../lib/process-stat.ts";
import { shortSocketPath } from "../lib/short-socket-path.ts";
import { stationStopped } from "./target.ts";

/** What a station elsewhere is reached with. */
export interface StationAccess {
  token?: string | undefined;
  /** Certificates that its own must lead to. */
  ca?: string | undefined;
  /** Aborted when the caller wants to leave. */
  leaving?: AbortSignal | undefined;
}

/** The station at a socket of this machine, for as long as this process lives; `pid` is its process. */
export function stationAtSocket(socketPath: string, pid?: number, leaving?: AbortSignal): RemoteStation {
  // Its folder stays open: there may be many requests.
  const { path } = shortSocketPath(socketPath);
  const client = connect({
    url: "http://station",
    ...unlessStopped({ fetch: lazyFetch(path), openSocket: unixWebSockets(path) }, pid),
    ...defined({ leaving }),
  });
  return createRemoteStation(client, { openPorts });
}

/** How often it is looked whether a station that has not answered yet is stopped. */
const STOPPED_LOOK_MS = 1_000;

interface Ways {
  fetch: Fetch;
  openSocket: OpenSocket;
}

/**
 * The same, but who waits for an answer is told soon when the station's process is stopped. What was asked for may have
 * been begun: it is not asked for again.
 */
export function unlessStopped({ fetch, openSocket }: Ways, pid: number | undefined): Ways {
  if (pid === undefined) return { fetch, openSocket };
  const whileWaiting = (onStopped: () => void): (() => void) => {
    const timer = setInterval(() => isStopped(processStat(pid)) && onStopped(), STOPPED_LOOK_MS);
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
      return Object.defineProperties(socket, { onopen: heard(answered), onclose: heard(answered) });
    },
  };
}

/** A listener that can be set as before, and that is told after somebody else. */
function heard(first: () => void): PropertyDescriptor {
  let listener: ((event: never) => void) | null = null;
  return {
    get: () => (event: never) => {
      first();
      listener?.(event);
    },
    set: (given: typeof listener) => {
      listener = given;
    },
  };
}

/** The station at an address. Its first call throws `unsupported` where it speaks another protocol. */
export async function stationAt({ url }: Extract<StationTarget, { kind: "elsewhere" }>, access: StationAccess): Promise<RemoteStation> {
  const bare = await clientAt(url, access);
  let understood: Promise<void> | undefined;
  const first = () => {
    understood ??= checkProtocol(bare);
    return understood;
  };
  return createRemoteStation(await clientAt(url, access, first), { openPorts });
}

/** `before` is waited for before each request. */
export async function clientAt(
  url: string,
  { token, ca, leaving }: StationAccess,
  before: () => Promise<void> = async () => {},
): Promise<Client> {
  if (token === undefined) {
    throw new CaissonError("unauthenticated", `there is no token for the station at ${url}`, {
      hint: "Set CAISSON_TOKEN, or keep one with the station: caisson login URL",
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
  throw new CaissonError("unsupported", `the station is version ${version}, and speaks another protocol than this`, {
    hint: "Use a Caisson of the station's version, or have the station updated.",
  });
}

function lazyFetch(socketPath: string): Fetch {
  return async (url, init) => {
    const { socketFetch } = await import("../client/socket-fetch.ts");
    return socketFetch(socketPath)(url, init);
  };
}

/** Listening on this machine is loaded with its first use. */
const openPorts: OpenPorts = {
  preview: async (sandbox, request) => (await import("../station/networks/open-ports.ts")).openPreview(sandbox, request),
  forward: async (sandbox, request) => (await import("../station/networks/open-ports.ts")).openForward(sandbox, request),
};
