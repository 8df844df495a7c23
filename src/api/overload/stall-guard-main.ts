import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { Socket } from "node:net";
import type { CopyRequest, GuardMessage } from "./stall-guard.ts";

/**
 * The guard's program. The station sends it a message with every beat. Descriptor 3 is the port, and 4 the socket. It
 * loads everything at the start, since it must never wait for a disk.
 */
const PORT_FD = 3;
const SOCKET_FD = 4;
const LOOK_MS = 250;
/** Checks without a beat before the guard answers: 5 s. A suspended guard does not check. */
const LOOKS_MAX = 20;
/** Time for answers in progress when the station recovers. */
const FINISH_MS = 100;
/** After this time a stalled station no longer counts as alive. */
const DEAD_MS = 15 * 60_000;
const RETRY_SECONDS = 5;
const CONNECTIONS_MAX = 512;

const headersOfAll = { "cache-control": "no-store", "x-content-type-options": "nosniff", connection: "close" };
/** Passed as an argument: if the station dies while this program loads, the parent is already process 1. */
const station = Number(process.argv[2]);
const open = new Set<Socket>();
let known: GuardMessage | null = null;
let looks = 0;
let isAnswering = false;
let stalledAtMs = 0;

function refuse(outgoing: ServerResponse): void {
  const problem = {
    type: "urn:caisson:problem:unavailable",
    title: "unavailable",
    status: 503,
    detail: "the station is stalled: it waits for its disk, or a long task blocks it",
    code: "unavailable",
    hint: "Try again later. `caisson status` shows how long it has been stalled.",
    details: { retryAfterSeconds: RETRY_SECONDS, stalledMs: stalledMs() },
    retryable: true,
  };
  const headers = { ...headersOfAll, "content-type": "application/problem+json", "retry-after": String(RETRY_SECONDS) };
  outgoing.writeHead(503, headers).end(JSON.stringify(problem));
}

function answer(incoming: IncomingMessage, outgoing: ServerResponse, { needsToken }: { needsToken: boolean }): void {
  incoming.resume();
  const path = (incoming.url ?? "").split("?", 1)[0];
  if (path === "/healthz" || path === "/readyz") {
    const isAlive = path === "/healthz" && stalledMs() < DEAD_MS;
    const headers = { ...headersOfAll, "content-type": "text/plain; charset=utf-8" };
    outgoing.writeHead(isAlive ? 200 : 503, headers).end(isAlive ? "ok\n" : "not ready\n");
    return;
  }
  if (path !== "/v1/status" || known === null || (needsToken && !isKnownToken(incoming, known))) {
    refuse(outgoing);
    return;
  }
  const text = JSON.stringify({ ...known.status, stalledMs: stalledMs() });
  outgoing.writeHead(200, { ...headersOfAll, "content-type": "application/json" }).end(text);
}

function isKnownToken({ headers }: IncomingMessage, { tokens }: GuardMessage): boolean {
  const secret = /^Bearer ([A-Za-z0-9_-]{1,200})$/i.exec(headers.authorization ?? "")?.[1];
  return secret !== undefined && tokens.includes(createHash("sha256").update(secret).digest("base64"));
}

function serve(fd: number, { tls, needsToken }: { tls: GuardMessage["tls"]; needsToken: boolean }): void {
  const onRequest = (incoming: IncomingMessage, outgoing: ServerResponse) => answer(incoming, outgoing, { needsToken });
  const timeouts = { headersTimeout: 2_000, requestTimeout: 2_000, connectionsCheckingInterval: 500, keepAlive: false };
  const secure = { ...timeouts, ...tls, minVersion: "TLSv1.2", handshakeTimeout: 2_000 } as const;
  const server: Server = tls === null ? createServer(timeouts, onRequest) : createSecureServer(secure, onRequest);
  server.maxConnections = CONNECTIONS_MAX;
  server.on("connection", (socket) => {
    open.add(socket);
    socket.on("error", () => {}).once("close", () => open.delete(socket));
  });
  server.on("error", () => {}).listen({ fd });
}

function stalledMs(): number {
  return Math.round(performance.now() - stalledAtMs);
}

/** Whether the station is suspended. A user who suspended it expects it to be silent. */
function isSuspended(): boolean {
  const stat = readFileSync(`/proc/${station}/stat`, "latin1");
  return /^[Tt]/.test(stat.slice(stat.lastIndexOf(")") + 2));
}

function look(): void {
  // Nothing else reports that the station was killed early.
  if (process.ppid !== station || !process.connected) process.exit();
  looks += 1;
  if (looks <= LOOKS_MAX || isAnswering || known === null) return;
  if (isSuspended()) {
    looks = 0;
    return;
  }
  isAnswering = true;
  stalledAtMs = performance.now() - looks * LOOK_MS;
  serve(PORT_FD, { tls: known.tls, needsToken: true });
  serve(SOCKET_FD, { tls: null, needsToken: false });
}

process
  .on("message", (message: GuardMessage | CopyRequest, handle: unknown) => {
    if ("copies" in message) {
      // The kernel creates another descriptor of each handle that is sent.
      for (let count = 0; count < message.copies; count++) process.send?.("copy", handle as Socket);
      return;
    }
    looks = 0;
    known = message;
    // The listening descriptors can only be closed, not given back. The station starts the next guard.
    if (isAnswering) setTimeout(() => process.exit(), FINISH_MS);
  })
  .on("disconnect", () => process.exit());
// Signals to the whole process group are meant for the station, which ends the guard.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"] as const) process.on(signal, () => {});
setInterval(look, LOOK_MS);
