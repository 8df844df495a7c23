import { type IncomingMessage, type ServerResponse, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { problemOf } from "../../contract/api/problem.ts";
import { CaissonError } from "../../contract/error.ts";
import type { Refusal } from "./share.ts";

/** A body up to this size is read and dropped, so that the connection stays. */
const SMALL_BODY_BYTES = 64 * 1024;
/** How much of a longer one is read, and for how long: a connection that is closed with unread bytes is reset. */
const DRAIN_BYTES_MAX = 4 * 1024 * 1024;
const DRAIN_MS = 2_000;

interface Written {
  status: number;
  headers: Record<string, string>;
  text: string;
}

export function overloadError({ why, retryAfterSeconds }: Refusal): CaissonError {
  const hint = `Try again in ${retryAfterSeconds} s; ask less often, or for less.`;
  const about = { hint, details: { retryAfterSeconds, overload: true } };
  return why === "share"
    ? new CaissonError("busy", "too many of your requests wait at the station", about)
    : new CaissonError("unavailable", "the station is overloaded", about);
}

function writtenOf(refusal: Refusal): Written {
  const { retryAfterSeconds } = refusal;
  const problem = problemOf(overloadError(refusal));
  const text = JSON.stringify(problem);
  const headers = {
    "content-type": "application/problem+json",
    "content-length": String(Buffer.byteLength(text)),
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "retry-after": String(retryAfterSeconds),
  };
  return { status: problem.status, headers, text };
}

const kept = new Map<string, Written>();

/** There are few of them, and they are made when there is no time to make them. */
function refusalText(refusal: Refusal): Written {
  const key = `${refusal.why} ${refusal.retryAfterSeconds}`;
  const found = kept.get(key) ?? writtenOf(refusal);
  kept.set(key, found);
  return found;
}

/** Answers without reading the request. Its connection stays, or ends without a reset after a large body. */
export function refuseRequest(incoming: IncomingMessage, outgoing: ServerResponse, refusal: Refusal): void {
  if (outgoing.destroyed) return;
  const { status, headers, text } = refusalText(refusal);
  if (hasSmallBody(incoming)) {
    outgoing.writeHead(status, headers).end(text);
    return;
  }
  outgoing.writeHead(status, { ...headers, connection: "close" }).write(text);
  drainThen(incoming, () => outgoing.end());
}

function hasSmallBody({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] === undefined && Number(headers["content-length"] ?? 0) <= SMALL_BODY_BYTES;
}

/** Reads what still comes of a body, within bounds. */
function drainThen(incoming: IncomingMessage, end: () => void): void {
  let left = DRAIN_BYTES_MAX;
  const finish = () => {
    clearTimeout(timer);
    incoming.off("data", onData).off("end", finish).off("close", finish);
    end();
  };
  const onData = (chunk: Buffer) => {
    left -= chunk.length;
    if (left < 0) finish();
  };
  const timer = setTimeout(finish, DRAIN_MS).unref();
  incoming.on("data", onData).once("end", finish).once("close", finish);
}

/** The same for a request that wants to become a WebSocket. */
export function refuseUpgrade(socket: Duplex, refusal: Refusal): void {
  if (socket.destroyed) return;
  const { status, headers, text } = refusalText(refusal);
  const lines = Object.entries({ ...headers, connection: "close" }).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join("")}\r\n${text}`);
}

/** What Node's parser did not take: answered and closed; a header that came too slowly may be sent again. */
export function refuseBroken(error: Error & { code?: string }, socket: Duplex): void {
  const isSlow = error.code === "ERR_HTTP_REQUEST_TIMEOUT";
  // A connection that broke, or whose handshake failed, hears nothing.
  if (!socket.writable || !(isSlow || error.code?.startsWith("HPE_"))) {
    socket.destroy();
    return;
  }
  const status = isSlow ? 408 : error.code === "HPE_HEADER_OVERFLOW" ? 431 : 400;
  const later = isSlow ? "retry-after: 1\r\n" : "";
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${later}content-length: 0\r\nconnection: close\r\n\r\n`);
}
