import { cleanText, type Header, HttpSyntaxError, type HttpVersion, headersIn, TOKEN, UNCLEAN_VALUE, withHeaders } from "./headers.ts";

export interface RequestHead {
  method: string;
  /** As sent: origin, absolute, authority or `*` form; see `requestTarget`. */
  target: string;
  version: HttpVersion;
  headers: Header[];
}
export interface ResponseHead {
  version: HttpVersion;
  status: number;
  reason: string;
  headers: Header[];
}

/** The destination of a request, from its target and its Host, which must agree. */
export interface RequestTarget {
  form: "origin" | "absolute" | "authority" | "asterisk";
  /** Null except in the absolute form. */
  scheme: "http" | "https" | null;
  /** In lower case, without brackets. A trailing dot is kept. Empty only for HTTP/1.0 without a Host. */
  host: string;
  /** Null if none was given. */
  port: number | null;
  /**
   * The path to send to the origin: begins with `/`, or is `*`; empty for the authority form. As received: nothing is
   * decoded or normalized.
   */
  path: string;
}

const METHOD_CHARS_MAX = 32;
const CONTENT_LENGTH_DIGITS_MAX = 15;

const TARGET = /^[\x21\x22\x24-\x7e\x80-\xff]+$/;
const DIGITS = /^[0-9]+$/;
const AUTHORITY = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?::([0-9]{1,5}))?$/;
const ABSOLUTE = /^([A-Za-z][A-Za-z0-9+.-]*):\/\/([^/?]*)(.*)$/s;
const SPACE = 0x20;

const methods = new Set(["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "PATCH"]);
/**
 * Parses the head of a request, from its first byte to the empty line that ends it. Throws `HttpSyntaxError` for
 * anything that two parsers could read differently: lines that do not end in CRLF, folded or spaced names, two lengths,
 * a length with an encoding, a Host that is missing, duplicate or different from the target's.
 */
export function parseRequestHead(bytes: Buffer): RequestHead {
  const text = cleanText(bytes);
  const lineEnd = text.indexOf("\r\n");
  const methodEnd = text.indexOf(" ");
  if (methodEnd <= 0 || methodEnd > lineEnd) throw new HttpSyntaxError("the request line does not consist of method, target and version");
  const versionAt = lineEnd - 9;
  if (versionAt <= methodEnd || !text.startsWith(" HTTP/", versionAt)) {
    throw new HttpSyntaxError("the request line does not end in HTTP/1.1 or HTTP/1.0");
  }
  const head: RequestHead = {
    method: text.slice(0, methodEnd),
    target: text.slice(methodEnd + 1, versionAt),
    version: versionIn(text, versionAt + 6),
    headers: headersIn(text, lineEnd + 2),
  };
  checkRequestLine(head);
  checkFraming(head);
  checkHost(head);
  return head;
}

/** Parses the head of a response. Throws `HttpSyntaxError` for the same reasons as `parseRequestHead`. */
export function parseResponseHead(bytes: Buffer): ResponseHead {
  const text = cleanText(bytes);
  const lineEnd = text.indexOf("\r\n");
  // `HTTP/1.1 200` has twelve characters. The space before an empty reason is often omitted.
  if (lineEnd < 12 || !text.startsWith("HTTP/") || text.charCodeAt(8) !== SPACE || (lineEnd > 12 && text.charCodeAt(12) !== SPACE)) {
    throw new HttpSyntaxError("the status line does not consist of version, status and reason");
  }
  const status = text.slice(9, 12);
  if (!DIGITS.test(status) || status < "100") throw new HttpSyntaxError("the status is not a three-digit number");
  const head: ResponseHead = {
    version: versionIn(text, 5),
    status: Number(status),
    reason: text.slice(13, Math.max(13, lineEnd)),
    headers: headersIn(text, lineEnd + 2),
  };
  checkFraming(head);
  return head;
}

/** Throws `HttpSyntaxError` rather than encode a name, value or target that would be read as something else. */
export function encodeRequestHead(head: RequestHead): Buffer {
  return Buffer.from(requestHeadText(head), "latin1");
}

/** Throws `HttpSyntaxError` rather than encode a name, value or reason that would be read as something else. */
export function encodeResponseHead(head: ResponseHead): Buffer {
  return Buffer.from(responseHeadText(head), "latin1");
}

/** Returns the text that `encodeRequestHead` encodes, with one byte per character. */
export function requestHeadText(head: RequestHead): string {
  checkRequestLine(head);
  return withHeaders(`${head.method} ${head.target} HTTP/${head.version}\r\n`, head.headers);
}

export function responseHeadText(head: ResponseHead): string {
  if (!Number.isInteger(head.status) || head.status < 100 || head.status > 999)
    throw new HttpSyntaxError("the status is not a three-digit number");
  if (UNCLEAN_VALUE.test(head.reason)) throw new HttpSyntaxError("the reason contains an invalid character");
  return withHeaders(`HTTP/${head.version} ${head.status} ${head.reason}\r\n`, head.headers);
}

/**
 * Throws `HttpSyntaxError` for a form that does not fit the method, for credentials in the target, and for a Host that
 * differs from the target's.
 */
export function requestTarget(head: RequestHead): RequestTarget {
  const { method, target } = head;
  const host = hostOf(head);
  if (method === "CONNECT") {
    const { name, port } = authority(target, "the target of CONNECT");
    if (port === null) throw new HttpSyntaxError("the target of CONNECT has no port");
    return { form: "authority", scheme: null, host: name, port, path: "" };
  }
  if (target.charCodeAt(0) === 0x2f) return { form: "origin", scheme: null, host: host.name, port: host.port, path: target };
  if (target === "*") {
    if (method !== "OPTIONS") throw new HttpSyntaxError("the target * is only valid for OPTIONS");
    return { form: "asterisk", scheme: null, host: host.name, port: host.port, path: "*" };
  }
  const match = ABSOLUTE.exec(target);
  if (match === null) throw new HttpSyntaxError("the target is neither a path nor a URL");
  const scheme = (match[1] as string).toLowerCase();
  if (scheme !== "http" && scheme !== "https") throw new HttpSyntaxError("the target's scheme is neither http nor https");
  const { name, port } = authority(match[2] as string, "the target's host");
  const usual = scheme === "http" ? 80 : 443;
  // With two names in one request, a denied host could be reached through an allowed one.
  if (head.version === "1.1" || host.name !== "") {
    if (host.name !== name || (host.port ?? usual) !== (port ?? usual)) throw new HttpSyntaxError("the Host differs from the target's");
  }
  const rest = match[3] as string;
  const path = rest === "" && method === "OPTIONS" ? "*" : rest.startsWith("/") ? rest : `/${rest}`;
  return { form: "absolute", scheme, host: name, port, path };
}

function versionIn(text: string, at: number): HttpVersion {
  if (text.startsWith("1.1", at)) return "1.1";
  if (text.startsWith("1.0", at)) return "1.0";
  throw new HttpSyntaxError("the version is neither HTTP/1.1 nor HTTP/1.0");
}

function checkRequestLine(head: RequestHead): void {
  if (!methods.has(head.method) && (head.method.length > METHOD_CHARS_MAX || !TOKEN.test(head.method))) {
    throw new HttpSyntaxError("the method is not a token");
  }
  if (!TARGET.test(head.target)) throw new HttpSyntaxError("the target is empty or contains a space, a # or a control character");
}

/** Checks that a head states the end of its body at most once. */
function checkFraming(head: RequestHead | ResponseHead): void {
  let length: string | null = null;
  let encoding: string | null = null;
  for (const { lower, value } of head.headers) {
    if (lower === "content-length") {
      if (length !== null) throw new HttpSyntaxError("there is more than one Content-Length");
      if (!DIGITS.test(value) || value.length > CONTENT_LENGTH_DIGITS_MAX)
        throw new HttpSyntaxError("the Content-Length is not a plain number");
      length = value;
    } else if (lower === "transfer-encoding") {
      if (encoding !== null) throw new HttpSyntaxError("there is more than one Transfer-Encoding");
      if (value !== "chunked" && value.toLowerCase() !== "chunked") throw new HttpSyntaxError("the Transfer-Encoding is not chunked");
      encoding = value;
    }
  }
  if (encoding !== null && length !== null) throw new HttpSyntaxError("there is both a Content-Length and a Transfer-Encoding");
  if ("method" in head && head.method === "CONNECT" && (encoding !== null || Number(length) > 0))
    throw new HttpSyntaxError("a CONNECT has a body");
  if (encoding !== null && head.version === "1.0") throw new HttpSyntaxError("HTTP/1.0 does not support Transfer-Encoding");
}

function checkHost(head: RequestHead): void {
  let hosts = 0;
  for (const { lower } of head.headers) if (lower === "host") hosts += 1;
  if (hosts > 1) throw new HttpSyntaxError("there is more than one Host");
  if (hosts === 0 && head.version === "1.1") throw new HttpSyntaxError("there is no Host");
  requestTarget(head);
}

interface Authority {
  readonly name: string;
  readonly port: number | null;
}

const none: Authority = { name: "", port: null };
/** Caches the last Host: clients request the same host again and again, and each request reads it more than once. */
let lastHost: { text: string; authority: Authority } = { text: "", authority: none };

function hostOf(head: RequestHead): Authority {
  for (const { lower, value } of head.headers) {
    if (lower !== "host") continue;
    if (value === "" || value !== lastHost.text) lastHost = { text: value, authority: authority(value, "the Host") };
    return lastHost.authority;
  }
  return none;
}

function authority(text: string, what: string): Authority {
  const match = AUTHORITY.exec(text);
  if (match === null) throw new HttpSyntaxError(`${what} is not a host with an optional port`);
  const name = (match[1] ?? match[2] ?? "").toLowerCase();
  if (match[3] === undefined) return { name, port: null };
  const port = Number(match[3]);
  if (port < 1 || port > 65_535) throw new HttpSyntaxError(`${what} has an invalid port`);
  return { name, port };
}
