import { createServer, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { CaissonError } from "../../contract/error/error.ts";
import { createConnectionShares } from "../../lib/connection-shares.ts";
import { ignore } from "../../lib/failures.ts";
import type { RequestHead } from "../http/head.ts";
import { headerValue } from "../http/headers.ts";
import { UpstreamPool } from "../http/pool.ts";
import { relayHttp } from "../http/relay.ts";
import { type RelayLimits, RelayRefusal, type RelayVerdict } from "../http/relay-options.ts";
import { listenOn } from "./listen.ts";
import { createPreviewAccess } from "./preview-access.ts";
import { busyPage, enterPage, refusedPage, unreachablePage } from "./preview-pages.ts";
import { createPreviewRewrite } from "./preview-rewrite.ts";
import { isPreviewToken, newPreviewToken } from "./preview-token.ts";
import type { ListeningPort } from "./watch-ports.ts";

export interface PreviewLimits extends RelayLimits {
  /** Simultaneous connections of browsers. Those that showed no token make room for newer ones. */
  connectionsMax: number;
}

export interface PreviewOptions {
  /** Connects to a port inside, such as `sandbox.connect`. */
  connect: (port: number) => Promise<Duplex>;
  /** Returns the listening ports, for the page of a port without a listener. */
  listeners?: () => Promise<readonly ListeningPort[]>;
  /** The port inside. */
  port: number;
  /** Absent: a new one. */
  token?: string;
  /** The port outside. Absent or 0: any free port. */
  listenPort?: number;
  /** Default: this machine only. */
  listenHost?: string;
  limits?: Partial<PreviewLimits>;
}

/** The preview of one sandbox port, for anyone with its URL. */
export interface Preview {
  readonly port: number;
  readonly token: string;
  readonly listenHost: string;
  readonly listenPort: number;
  /**
   * For browsers and curl, which resolve every name below localhost. It is a separate origin, so cookies and absolute
   * paths belong to the program.
   */
  readonly url: string;
  /** For programs that do not resolve these names. It sets a cookie. */
  readonly plainUrl: string;
  connections(): number;
  /** Ends every connection at once and stops listening. The URL no longer works. Idempotent. */
  revoke(): Promise<void>;
}

const CONNECTIONS_MAX = 1024;
/** A page that waits for changes may be silent for hours. */
const IDLE_MS = 4 * 3_600_000;

/**
 * Serves one HTTP port of a sandbox on a port outside. Every request must have the token. The program inside receives
 * neither the token nor our cookie, and sees requests to localhost. WebSockets and streams pass unchanged. Throws
 * `invalid` for a weak token, and `conflict` or `denied` for a port that is not available.
 */
export async function createPreview(options: PreviewOptions): Promise<Preview> {
  const { port, listenHost = "127.0.0.1", token = newPreviewToken(), limits = {} } = options;
  if (!isPreviewToken(token)) throw new CaissonError("invalid", "a preview token must have 26 to 63 characters of lower-case base 32");
  const pool = new UpstreamPool();
  const ending = new AbortController();
  const clients = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true, noDelay: true });
  const max = limits.connectionsMax ?? CONNECTIONS_MAX;
  // On this machine, and behind the station's own port, all callers have the same address.
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
    const decideHere = (head: RequestHead): RelayVerdict => {
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

function decider(options: PreviewOptions & { token: string; listenPort: number }): (head: RequestHead) => RelayVerdict {
  const { connect, port, token } = options;
  const access = createPreviewAccess({ token, cookieId: options.listenPort });
  const rewrite = createPreviewRewrite({ token, port });
  const connectFor = (head: RequestHead) => async () => {
    try {
      return await connect(port);
    } catch (error) {
      const asking = options.listeners === undefined ? null : ignore(options.listeners(), "the page omits them");
      throw new RelayRefusal(unreachablePage(head, { port, error, listeners: (await asking) ?? null }));
    }
  };
  return (head) => {
    const decision = access(head);
    if (decision.kind === "refused") return refusedPage;
    if (decision.kind === "enter") return enterPage(decision);
    const target = { host: headerValue(head, "host") ?? "", byHost: decision.byHost };
    return {
      kind: "forward",
      key: String(port),
      connect: connectFor(head),
      request: rewrite.request(head, decision.path),
      response: (answer) => ({ head: answer.status < 200 ? answer : rewrite.response(answer, target) }),
    };
  };
}
