import { readFileSync } from "node:fs";
import type { Server } from "node:http";
import type { Socket } from "node:net";
import { type ConnectionShare, createConnectionShares } from "../lib/connection-shares.ts";
import { ifErrnoSync, UNREACHABLE } from "../lib/failures.ts";

const CONNECTIONS_MAX = 4096;
/** Connections accepted above the limit while an older one makes room. */
const SPARE = 64;
/** The console pages that a connection without a token gets before it is closed. */
const PAGES_MAX = 64;

/** A connection of the port: its share, and the pages it received without a token. */
export interface PortConnection extends ConnectionShare {
  /** Whether it stays open after the answer to its current request. */
  readonly staysOpen: boolean;
  /** Marks the current request as one for a console page, which needs no token. */
  servePage(): void;
}

/** The connections of a port, with a share for each address. */
export interface PortConnections {
  watch(server: Server): void;
  /** With TLS, a request's socket differs from the accepted one; both have the same peer. */
  of(socket: Socket): PortConnection | undefined;
  count(): number;
}

export function createPortConnections(options: { isShared: (address: string) => boolean; max?: number }): PortConnections {
  const { max = connectionsMax() } = options;
  const shares = createConnectionShares({ ...options, max });
  const byPeer = new Map<string, PortConnection>();
  return {
    watch(server) {
      server.maxConnections = max + SPARE;
      server.on("connection", (socket: Socket) => {
        const peer = peerOf(socket);
        const share = shares.add({ address: socket.remoteAddress ?? "", destroy: () => socket.destroy() });
        const connection = withPages(share);
        byPeer.set(peer, connection);
        socket.once("close", () => {
          share.remove();
          if (byPeer.get(peer) === connection) byPeer.delete(peer);
        });
      });
    },
    of: (socket) => byPeer.get(peerOf(socket)),
    count: shares.count,
  };
}

const peerOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;

function withPages(share: ConnectionShare): PortConnection {
  let pages = 0;
  let isPage = false;
  return {
    get isAdmitted() {
      return share.isAdmitted;
    },
    get staysOpen() {
      return share.isAdmitted || isPage;
    },
    admit: share.admit,
    begin() {
      isPage = false;
      share.begin();
    },
    end: share.end,
    servePage() {
      pages += 1;
      isPage = pages < PAGES_MAX;
    },
  };
}

/** Returns at most a quarter of the files that this process may have open, so that strangers cannot exhaust them. */
function connectionsMax(): number {
  const text = ifErrnoSync(() => readFileSync("/proc/self/limits", "latin1"), UNREACHABLE, "");
  const files = Number(/^Max open files +([0-9]+)/m.exec(text)?.[1] ?? Number.NaN);
  return Number.isNaN(files) ? CONNECTIONS_MAX : Math.max(64, Math.min(CONNECTIONS_MAX, Math.floor(files / 4)));
}
