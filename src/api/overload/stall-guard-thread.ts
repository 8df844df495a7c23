import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { GuardListener, GuardSnapshot, guardWords } from "./stall-guard.ts";

/**
 * The guard's thread. It is started from its own text, without the program, and must not wait for a disk: it uses
 * nothing but what it loads itself.
 */
export function runStallGuard(load: NodeJS.Require): void {
  const STALLED_MS = 5_000;
  /** A process that was stopped itself is not stalled when it continues. */
  const CONFIRM_MS = 300;
  const LOOK_MS = 50;
  /** For answers that are being written when the station turns again. */
  const FINISH_MS = 100;
  /** From here on a station that does not turn is not alive. */
  const DEAD_MS = 15 * 60_000;
  const RETRY_SECONDS = 5;
  const { workerData } = load("node:worker_threads") as typeof import("node:worker_threads");
  const { createHash } = load("node:crypto") as typeof import("node:crypto");
  const http = load("node:http") as typeof import("node:http");
  const { shared, listeners, words } = workerData as { shared: SharedArrayBuffer; listeners: GuardListener[]; words: typeof guardWords };
  const header = new Int32Array(shared, 0, words.count);
  const bytes = new Uint8Array(shared, 4 * words.count);
  let stalledAtMs = 0;
  let lastBeat = 0;
  const noStore = { "cache-control": "no-store", "x-content-type-options": "nosniff", connection: "close" };
  const open = new Set<import("node:net").Socket>();

  const snapshot = (): GuardSnapshot | null => {
    const before = Atomics.load(header, words.version);
    if (before % 2 !== 0) return null;
    try {
      return JSON.parse(Buffer.from(bytes.slice(0, Atomics.load(header, words.length))).toString("utf8")) as GuardSnapshot;
    } catch {
      return null;
    }
  };
  const refuse = (outgoing: ServerResponse) => {
    const problem = {
      type: "urn:caisson:problem:unavailable",
      title: "unavailable",
      status: 503,
      detail: "the station stands still: it waits for its disk, or something keeps it busy",
      code: "unavailable",
      hint: "Try again later; `caisson status` tells how long it has been so.",
      details: { retryAfterSeconds: RETRY_SECONDS, stalledMs: Math.round(performance.now() - stalledAtMs) },
      retryable: true,
    };
    const headers = { ...noStore, "content-type": "application/problem+json", "retry-after": String(RETRY_SECONDS) };
    outgoing.writeHead(503, headers).end(JSON.stringify(problem));
  };
  const mayAsk = ({ headers }: IncomingMessage, { tokens }: GuardSnapshot): boolean => {
    const secret = /^Bearer ([A-Za-z0-9_-]{1,200})$/i.exec(headers.authorization ?? "")?.[1];
    return secret !== undefined && tokens.includes(createHash("sha256").update(secret).digest("base64"));
  };
  const answer = (incoming: IncomingMessage, outgoing: ServerResponse, needsToken: boolean) => {
    incoming.resume();
    const path = (incoming.url ?? "").split("?", 1)[0];
    const stalledMs = Math.round(performance.now() - stalledAtMs);
    if (path === "/healthz" || path === "/readyz") {
      const isAlive = path === "/healthz" && stalledMs < DEAD_MS;
      const text = isAlive ? "ok\n" : "not ready\n";
      outgoing.writeHead(isAlive ? 200 : 503, { ...noStore, "content-type": "text/plain; charset=utf-8" }).end(text);
      return;
    }
    const known = path === "/v1/status" ? snapshot() : null;
    if (known === null || (needsToken && !mayAsk(incoming, known))) return refuse(outgoing);
    outgoing.writeHead(200, { ...noStore, "content-type": "application/json" }).end(JSON.stringify({ ...known.status, stalledMs }));
  };
  const serve = ({ fd, needsToken, tls }: GuardListener): Server => {
    const onRequest = (incoming: IncomingMessage, outgoing: ServerResponse) => answer(incoming, outgoing, needsToken);
    const timeouts = { headersTimeout: 2_000, requestTimeout: 2_000, connectionsCheckingInterval: 500, keepAlive: false };
    const https = tls === null ? null : (load("node:https") as typeof import("node:https"));
    const secure = { ...timeouts, ...tls, minVersion: "TLSv1.2", handshakeTimeout: 2_000 } as const;
    const server = https === null ? http.createServer(timeouts, onRequest) : (https.createServer(secure, onRequest) as unknown as Server);
    server.maxConnections = 512;
    server.on("connection", (socket) => {
      open.add(socket);
      socket.on("error", () => {}).once("close", () => open.delete(socket));
    });
    return server.on("error", () => {}).listen({ fd });
  };
  const sleep = () => {
    for (;;) {
      lastBeat = Atomics.load(header, words.beat);
      // Closed by then: the descriptors are not ours any more.
      while (Atomics.load(header, words.isEnded) !== 0) Atomics.wait(header, words.isEnded, 1);
      if (Atomics.wait(header, words.beat, lastBeat, STALLED_MS) !== "timed-out") continue;
      if (Atomics.wait(header, words.beat, lastBeat, CONFIRM_MS) === "timed-out") break;
    }
    stalledAtMs = performance.now() - STALLED_MS - CONFIRM_MS;
    setTimeout(look, LOOK_MS);
  };
  const look = () => {
    if (Atomics.load(header, words.beat) === lastBeat) {
      setTimeout(look, LOOK_MS);
      return;
    }
    setTimeout(() => {
      for (const socket of open) socket.destroy();
      sleep();
    }, FINISH_MS);
  };
  for (const listener of listeners) serve(listener);
  // In the same turn: until the loop stands still, this thread accepts nothing.
  sleep();
}
