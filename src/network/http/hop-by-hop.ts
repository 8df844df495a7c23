import type { BodyFraming } from "./body.ts";
import type { RequestHead, ResponseHead } from "./head.ts";
import { type Header, header } from "./headers.ts";

/** What a head specifies about its connection. */
export interface ConnectionWishes {
  close: boolean;
  keepAlive: boolean;
  /** The protocol requested in Upgrade, in lower case, if Connection also names Upgrade. */
  upgrade: string | null;
  /** True if the sender waits for a 100 before it sends the body. */
  expectContinue: boolean;
  /** How long the other side keeps an idle connection, if it says so. */
  keepMs: number | null;
  /** Other headers that Connection names, which apply to this hop only. */
  named: readonly string[];
}

/** A request as received. */
export interface IncomingRequest {
  head: RequestHead;
  framing: BodyFraming;
  wishes: ConnectionWishes;
  startedMs: number;
}

const none: readonly string[] = [];
const justKeepAlive: readonly string[] = ["keep-alive"];

export function connectionWishes(head: RequestHead | ResponseHead): ConnectionWishes {
  const wishes = {
    close: false,
    keepAlive: false,
    upgrade: null as string | null,
    expectContinue: false,
    keepMs: null as number | null,
    named: none,
  };
  let protocol: string | null = null;
  let upgrade = false;
  for (const { lower, value } of head.headers) {
    if (lower === "connection") {
      for (const name of connectionOptions(value)) {
        if (name === "close") wishes.close = true;
        else if (name === "keep-alive") wishes.keepAlive = true;
        else if (name === "upgrade") upgrade = true;
        else if (name !== "") wishes.named = [...wishes.named, name];
      }
    } else if (lower === "upgrade") protocol = protocol === null ? value.toLowerCase() : `${protocol}, ${value.toLowerCase()}`;
    else if (lower === "expect") wishes.expectContinue ||= value.toLowerCase() === "100-continue";
    else if (lower === "keep-alive") wishes.keepMs = keepMsIn(value);
  }
  if (upgrade) wishes.upgrade = protocol;
  return wishes;
}

function connectionOptions(value: string): readonly string[] {
  // The most frequent value.
  if (value === "keep-alive") return justKeepAlive;
  return value
    .toLowerCase()
    .split(",")
    .map((option) => option.trim());
}

/** Checks whether the sender of this head keeps the connection open for another message. */
export function isPersistent(head: RequestHead | ResponseHead, wishes: ConnectionWishes): boolean {
  return !wishes.close && (head.version === "1.1" || wishes.keepAlive);
}

/** Returns the request headers for the next hop, with the framing of its body. */
export function headersUpstream(
  headers: readonly Header[],
  next: { framing: BodyFraming; named: readonly string[]; upgrade: string | null; version: RequestHead["version"] },
): Header[] {
  const fields = endToEnd(headers, next.named);
  if (next.upgrade !== null) fields.push(header("Connection", "Upgrade"), header("Upgrade", next.upgrade));
  else if (next.version === "1.0") fields.push(header("Connection", "close"));
  pushFraming(fields, next.framing);
  return fields;
}

/** Returns the response headers for the client. */
export function headersDownstream(
  head: ResponseHead,
  next: { framing: BodyFraming; named: readonly string[]; upgrade: string | null; connection: "close" | "keep-alive" | null },
): Header[] {
  const fields = endToEnd(head.headers, next.named);
  if (next.upgrade !== null) fields.push(header("Connection", "Upgrade"), header("Upgrade", next.upgrade));
  else if (next.connection !== null) fields.push(header("Connection", next.connection));
  // Without a body, the head states the length that the body would have had (HEAD, 304). A 204 or 1xx must not state a
  // length.
  if (next.framing.kind !== "none") pushFraming(fields, next.framing);
  else if (head.status >= 200 && head.status !== 204) for (const field of head.headers) if (isFraming(field.lower)) fields.push(field);
  return fields;
}

function endToEnd(headers: readonly Header[], named: readonly string[]): Header[] {
  const fields: Header[] = [];
  for (const field of headers) {
    if (isForOneHop(field.lower)) continue;
    // A Host is required, whatever the Connection header says about it.
    if (named.length > 0 && field.lower !== "host" && named.includes(field.lower)) continue;
    fields.push(field);
  }
  return fields;
}

function isFraming(lower: string): boolean {
  return lower === "content-length" || lower === "transfer-encoding";
}

const forOneHop = new Set(["connection", "content-length", "http2-settings", "keep-alive", "te", "transfer-encoding", "upgrade"]);

function isForOneHop(lower: string): boolean {
  return forOneHop.has(lower) || lower.startsWith("proxy-");
}

function pushFraming(headers: Header[], framing: BodyFraming): void {
  if (framing.kind === "length") headers.push(header("Content-Length", String(framing.bytes)));
  else if (framing.kind === "chunked") headers.push(header("Transfer-Encoding", "chunked"));
}

function keepMsIn(value: string): number | null {
  const match = /(?:^|[,;\s])timeout=([0-9]{1,6})(?:$|[,;\s])/i.exec(value);
  return match === null ? null : Number(match[1]) * 1000;
}
