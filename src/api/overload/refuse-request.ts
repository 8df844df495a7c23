import { type IncomingMessage, type ServerResponse, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { problemOf } from "../../contract/api/problem.ts";
import { CaissonError } from "../../contract/error/error.ts";
import type { Refusal } from "./share.ts";

/** A body up to this size is read and dropped, to keep the connection open. */
const SMALL_BODY_BYTES = 64 * 1024;
/** How much of a larger body is read, and for how long. Closing a connection with unread bytes would reset it. */
const DRAIN_BYTES_MAX = 4 * 1024 * 1024;
const DRAIN_MS = 2_000;

interface Written {
  status: number;
  headers: Record<string, string>;
  text: string;
}

export function overloadError({ why, retryAfterSeconds }: Refusal): CaissonError {
  const hint = `Try again in ${retryAfterSeconds} s. Send fewer or smaller requests.`;
  const about = { hint, details: { retryAfterSeconds, overload: true } };
  return why === "share"
    ? new CaissonError("busy", "too many of your requests are waiting at the station", about)
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

const texts = new Map<string, Written>();

/** Caches the few texts, because there is no time to build them under overload. */
function refusalText(refusal: Refusal): Written {
  const key = `${refusal.why} ${refusal.retryAfterSeconds}`;
  const written = texts.get(key) ?? writtenOf(refusal);
  texts.set(key, written);
  return written;
}

/** Answers without processing the request. Its connection stays open or, after a large body, ends without a reset. */
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

/** Reads the rest of a body, within limits. */
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

/** Does the same for a WebSocket upgrade. */
export function refuseUpgrade(socket: Duplex, refusal: Refusal): void {
  if (socket.destroyed) return;
  const { status, headers, text } = refusalText(refusal);
  const lines = Object.entries({ ...headers, connection: "close" }).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join("")}\r\n${text}`);
}

/**
 * Answers a request that Node's parser rejected, and closes the connection. A header that arrived too slowly may be
 * sent again.
 */
export function refuseBroken(error: Error & { code?: string }, socket: Duplex): void {
  const isSlow = error.code === "ERR_HTTP_REQUEST_TIMEOUT";
  // A broken connection, or one whose handshake failed, gets no answer.
  if (!socket.writable || !(isSlow || error.code?.startsWith("HPE_"))) {
    socket.destroy();
    return;
  }
  const status = isSlow ? 408 : error.code === "HPE_HEADER_OVERFLOW" ? 431 : 400;
  const later = isSlow ? "retry-after: 1\r\n" : "";
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${later}content-length: 0\r\nconnection: close\r\n\r\n`);
}
