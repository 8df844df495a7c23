import { createServer, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { CaissonError } from "../../contract/error.ts";
import { createConnectionShares } from "../../lib/connection-shares.ts";
import type { RequestHead } from "../http/head.ts";
import { headerValue } from "../http/headers.ts";
import { UpstreamPool } from "../http/pool.ts";
import { relayHttp } from "../http/relay.ts";
import { type RelayLimits, RelayRefusal, type Verdict } from "../http/relay-options.ts";
import { listenOn } from "./listen.ts";
import { createPreviewAccess } from "./preview-access.ts";
import { busyPage, enterPage, refusedPage, unreachablePage } from "./preview-pages.ts";
import { createPreviewRewrite } from "./preview-rewrite.ts";
import { isPreviewToken, newPreviewToken } from "./preview-token.ts";
import type { ListeningPort } from "./watch-ports.ts";

export interface PreviewLimits extends RelayLimits {
  /** Browsers' connections at a time. Those that showed no token make room for newer ones. */
  connectionsMax: number;
}

export interface PreviewOptions {
  /** A connection to a port inside, such as `sandbox.connect`. */
  connect: (port: number) => Promise<Duplex>;
  /** For the page that says that nothing listens. */
  listeners?: () => Promise<readonly ListeningPort[]>;
  /** The port inside. */
  port: number;
  /** Absent: a fresh one. */
  token?: string;
  /** The port outside; absent or 0: any that is free. */
  listenPort?: number;
  /** Default: this machine only. */
  listenHost?: string;
  limits?: Partial<PreviewLimits>;
}

/** One port of a sandbox, for whoever has its URL. */
export interface Preview {
  readonly port: number;
  readonly token: string;
  readonly listenHost: string;
  readonly listenPort: number;
  /**
   * For browsers and curl, which know every name below localhost: an origin of its own, where cookies and absolute
   * paths are the program's.
   */
  readonly url: string;
  /** For programs that do not; it leads to a cookie. */
  readonly plainUrl: string;
  connections(): number;
  /** Ends every connection at once and stops listening; the URL is worth nothing from now on. Idempotent. */
  revoke(): Promise<void>;
}

const CONNECTIONS_MAX = 1024;
/** A page that waits for changes is quiet for long. */
const IDLE_MS = 4 * 3_600_000;

/**
 * Shows one HTTP port of a sandbox on a port outside. Every request must have the token; the program inside gets
 * neither it nor our cookie, and is asked by the name localhost. WebSockets and streams pass as they are. Throws
 * `invalid` for a token that is too weak, `conflict`, `denied` for a port that cannot be had.
 */
export async function createPreview(options: PreviewOptions): Promise<Preview> {
  const { port, listenHost = "127.0.0.1", token = newPreviewToken(), limits = {} } = options;
  if (!isPreviewToken(token)) throw new CaissonError("invalid", "a preview's token is 26 to 63 characters of lower-case base 32");
  const pool = new UpstreamPool();
  const ending = new AbortController();
  const clients = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true, noDelay: true });
  const max = limits.connectionsMax ?? CONNECTIONS_MAX;
  // On this machine, and behind the station's own port, all callers have one address.
  const shares = createConnectionShares({ max, isShared: (address) => /^(?:::ffff:)?127\.|^::1$/.test(address) });
  server.maxConnections = max + 1;
  const listenPort = await listenOn(server, { host: listenHost, port: options.listenPort ?? 0 });
  const decide = decider({ ...options, token, listenPort });
  server.on("connection", (client) => {
    clients.add(client);
    const share = shares.add({ address: client.remoteAddress ?? "", destroy: () => client.destroy() });
    client.once("close", () => {
      clients.delete(client);
      share.remove();
    });
    const decideHere = (head: RequestHead): Verdict => {
      const verdict = decide(head);
      if (verdict === refusedPage || share.admit()) return verdict;
      return busyPage;
    };
    void relayHttp(client, { decide: decideHere, pool, limits: { idleMs: IDLE_MS, ...limits }, signal: ending.signal });
  });
  const revoke = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      ending.abort();
      pool.close();
      for (const client of clients) client.destroy();
    });
  let revoked: Promise<void> | undefined;
  return {
    port,
    token,
    listenHost,
    listenPort,
    url: `http://${token}.localhost:${listenPort}/`,
    plainUrl: `http://${listenHost.includes(":") ? `[${listenHost}]` : listenHost}:${listenPort}/?caisson-token=${token}`,
    connections: () => clients.size,
    revoke: () => (revoked ??= revoke()),
  };
}

function decider(options: PreviewOptions & { token: string; listenPort: number }): (head: RequestHead) => Verdict {
  const { connect, port, token } = options;
  const access = createPreviewAccess({ token, cookieId: options.listenPort });
  const rewrite = createPreviewRewrite({ token, port });
  const connectFor = (head: RequestHead) => async () => {
    try {
      return await connect(port);
    } catch (error) {
      const listeners = (await options.listeners?.().catch(() => null)) ?? null;
      throw new RelayRefusal(unreachablePage(head, { port, error, listeners }));
    }
  };
  return (head) => {
    const given = access(head);
    if (given.kind === "refused") return refusedPage;
    if (given.kind === "enter") return enterPage(given);
    const asked = { host: headerValue(head, "host") ?? "", byHost: given.byHost };
    return {
      kind: "forward",
      key: String(port),
      connect: connectFor(head),
      request: rewrite.request(head, given.path),
      response: (answer) => ({ head: answer.status < 200 ? answer : rewrite.response(answer, asked) }),
    };
  };
}
