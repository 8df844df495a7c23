import type { BodyFraming } from "./body.ts";
import type { RequestHead, ResponseHead } from "./head.ts";
import { type Header, header } from "./headers.ts";

/** What a head says about its connection. */
export interface ConnectionWishes {
  close: boolean;
  keepAlive: boolean;
  /** The protocol asked for in Upgrade, in lower case, if Connection names Upgrade, too. */
  upgrade: string | null;
  /** The sender waits for a 100 before it sends the body. */
  expectContinue: boolean;
  /** How long the other side says it keeps an idle connection. */
  keepMs: number | null;
  /** Other headers that Connection names: they are for this hop. */
  named: readonly string[];
}

/** A request as it came in. */
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
  // What most heads say, if they say anything.
  if (value === "keep-alive") return justKeepAlive;
  return value
    .toLowerCase()
    .split(",")
    .map((option) => option.trim());
}

/** Whether the one who sent this head takes or sends another on the same connection. */
export function isPersistent(head: RequestHead | ResponseHead, wishes: ConnectionWishes): boolean {
  return !wishes.close && (head.version === "1.1" || wishes.keepAlive);
}

/** What of a request's headers goes on to the next hop, with the framing of the body that goes with it. */
export function headersUpstream(
  headers: readonly Header[],
  next: { framing: BodyFraming; named: readonly string[]; upgrade: string | null; version: RequestHead["version"] },
): Header[] {
  const kept = endToEnd(headers, next.named);
  if (next.upgrade !== null) kept.push(header("Connection", "Upgrade"), header("Upgrade", next.upgrade));
  else if (next.version === "1.0") kept.push(header("Connection", "close"));
  pushFraming(kept, next.framing);
  return kept;
}

/** What of a response's headers goes back to the client. */
export function headersDownstream(
  head: ResponseHead,
  next: { framing: BodyFraming; named: readonly string[]; upgrade: string | null; connection: "close" | "keep-alive" | null },
): Header[] {
  const kept = endToEnd(head.headers, next.named);
  if (next.upgrade !== null) kept.push(header("Connection", "Upgrade"), header("Upgrade", next.upgrade));
  else if (next.connection !== null) kept.push(header("Connection", next.connection));
  // Without a body, lengths are what the body would have had (HEAD, 304); a 204 or 1xx must not state any.
  if (next.framing.kind !== "none") pushFraming(kept, next.framing);
  else if (head.status >= 200 && head.status !== 204) for (const field of head.headers) if (isFraming(field.lower)) kept.push(field);
  return kept;
}

function endToEnd(headers: readonly Header[], named: readonly string[]): Header[] {
  const kept: Header[] = [];
  for (const field of headers) {
    if (isForOneHop(field.lower)) continue;
    // A Host is needed whatever the Connection header says of it.
    if (named.length > 0 && field.lower !== "host" && named.includes(field.lower)) continue;
    kept.push(field);
  }
  return kept;
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
