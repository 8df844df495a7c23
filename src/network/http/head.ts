import { HttpSyntaxError } from "./http-syntax-error.ts";
import { requestTarget } from "./target.ts";

/** Values are text of single bytes (latin1), so that what came in goes out byte for byte; `lower` is the name in lower case. */
export interface Header {
  name: string;
  lower: string;
  value: string;
}
export type HttpVersion = "1.0" | "1.1";
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

export const HEAD_BYTES_MAX = 65_536;
export const HEADERS_MAX = 200;
const METHOD_CHARS_MAX = 32;
const CONTENT_LENGTH_DIGITS_MAX = 15;

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const TARGET = /^[\x21\x22\x24-\x7e\x80-\xff]+$/;
/** A control character, a CR without LF or an LF without CR. */
const UNCLEAN = /[^\t\r\n\x20-\x7e\x80-\xff]|\r(?!\n)|(?<!\r)\n/;
const UNCLEAN_VALUE = /[^\t\x20-\x7e\x80-\xff]/;
const DIGITS = /^[0-9]+$/;
const COLON = 0x3a;
const SPACE = 0x20;
const TAB = 0x09;

const methods = new Set(["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "PATCH"]);
/** Names that nearly every head has, as they are usually written: they need no look at each character. */
const usualNames = new Map<string, string>(
  [
    ..."Accept Accept-Encoding Accept-Language Accept-Ranges Access-Control-Allow-Origin Age Authorization Cache-Control Connection".split(
      " ",
    ),
    ..."Content-Disposition Content-Encoding Content-Length Content-Type Cookie Date ETag Expect Expires Host If-Modified-Since".split(" "),
    ..."If-None-Match Keep-Alive Last-Modified Location Origin Pragma Proxy-Authorization Proxy-Connection Range Referer Server".split(" "),
    ..."Set-Cookie TE Trailer Transfer-Encoding Upgrade User-Agent Vary Via X-Forwarded-For X-Requested-With".split(" "),
  ].flatMap((name) => [
    [name, name.toLowerCase()],
    [name.toLowerCase(), name.toLowerCase()],
  ]),
);

/**
 * The head of a request, from its first byte to the empty line that ends it. Throws `HttpSyntaxError` for whatever two readers could take in two ways:
 * lines that do not end in CRLF, folded or spaced names, two lengths, a length with an encoding, a Host that is missing, double or not the target's.
 */
export function parseRequestHead(bytes: Buffer): RequestHead {
  const text = cleanText(bytes);
  const lineEnd = text.indexOf("\r\n");
  const methodEnd = text.indexOf(" ");
  if (methodEnd <= 0 || methodEnd > lineEnd) throw new HttpSyntaxError("the request line is not method, target and version");
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

/** The head of a response. Throws `HttpSyntaxError` as for requests. */
export function parseResponseHead(bytes: Buffer): ResponseHead {
  const text = cleanText(bytes);
  const lineEnd = text.indexOf("\r\n");
  // Twelve characters are `HTTP/1.1 200`; the space before an empty reason is often left out.
  if (lineEnd < 12 || !text.startsWith("HTTP/") || text.charCodeAt(8) !== SPACE || (lineEnd > 12 && text.charCodeAt(12) !== SPACE)) {
    throw new HttpSyntaxError("the status line is not version, status and reason");
  }
  const status = text.slice(9, 12);
  if (!DIGITS.test(status) || status < "100") throw new HttpSyntaxError("the status is not a number of three digits");
  const head: ResponseHead = {
    version: versionIn(text, 5),
    status: Number(status),
    reason: text.slice(13, Math.max(13, lineEnd)),
    headers: headersIn(text, lineEnd + 2),
  };
  checkFraming(head);
  return head;
}

/** Throws `HttpSyntaxError` rather than write a name, value or target that would be read as something else. */
export function encodeRequestHead(head: RequestHead): Buffer {
  return Buffer.from(requestHeadText(head), "latin1");
}

/** Throws `HttpSyntaxError` rather than write a name, value or reason that would be read as something else. */
export function encodeResponseHead(head: ResponseHead): Buffer {
  return Buffer.from(responseHeadText(head), "latin1");
}

/** What `encodeRequestHead` encodes; every character is one byte. */
export function requestHeadText(head: RequestHead): string {
  checkRequestLine(head);
  return withHeaders(`${head.method} ${head.target} HTTP/${head.version}\r\n`, head.headers);
}

export function responseHeadText(head: ResponseHead): string {
  if (!Number.isInteger(head.status) || head.status < 100 || head.status > 999)
    throw new HttpSyntaxError("the status is not a number of three digits");
  if (UNCLEAN_VALUE.test(head.reason)) throw new HttpSyntaxError("the reason holds a character that may not be there");
  return withHeaders(`HTTP/${head.version} ${head.status} ${head.reason}\r\n`, head.headers);
}

/** A header to be sent. What is wrong with it is found when it is encoded. */
export function header(name: string, value: string): Header {
  return { name, lower: usualNames.get(name) ?? name.toLowerCase(), value };
}

/** The value of the first header of this name (in lower case). */
export function headerValue(head: { headers: readonly Header[] }, lower: string): string | undefined {
  for (const header of head.headers) if (header.lower === lower) return header.value;
  return undefined;
}

/** Lines of headers up to and with the empty one; for heads and trailers. Throws `HttpSyntaxError`. */
export function parseHeaderLines(bytes: Buffer): Header[] {
  return headersIn(cleanText(bytes), 0);
}

function cleanText(bytes: Buffer): string {
  if (bytes.length > HEAD_BYTES_MAX) throw new HttpSyntaxError(`the head is longer than ${HEAD_BYTES_MAX} bytes`, 431);
  const text = bytes.toString("latin1");
  if (!text.endsWith("\r\n")) throw new HttpSyntaxError("the head does not end in an empty line");
  if (UNCLEAN.test(text)) throw new HttpSyntaxError("the head holds a control character, or a line that does not end in CR LF");
  return text;
}

function versionIn(text: string, at: number): HttpVersion {
  if (text.startsWith("1.1", at)) return "1.1";
  if (text.startsWith("1.0", at)) return "1.0";
  throw new HttpSyntaxError("the version is neither HTTP/1.1 nor HTTP/1.0");
}

function headersIn(text: string, start: number): Header[] {
  const headers: Header[] = [];
  for (let at = start; ; ) {
    const lineEnd = text.indexOf("\r\n", at);
    if (lineEnd === -1) throw new HttpSyntaxError("the head does not end in an empty line");
    if (lineEnd === at) {
      if (at + 2 !== text.length) throw new HttpSyntaxError("something follows the empty line");
      return headers;
    }
    if (headers.length === HEADERS_MAX) throw new HttpSyntaxError(`there are more than ${HEADERS_MAX} headers`, 431);
    headers.push(headerIn(text, at, lineEnd));
    at = lineEnd + 2;
  }
}

function headerIn(text: string, at: number, lineEnd: number): Header {
  let colon = at;
  while (colon < lineEnd && text.charCodeAt(colon) !== COLON) colon += 1;
  if (colon === lineEnd) throw new HttpSyntaxError("a header line has no colon");
  const name = text.slice(at, colon);
  let lower = usualNames.get(name);
  if (lower === undefined) {
    if (!TOKEN.test(name))
      throw new HttpSyntaxError("a header's name is empty, folded, or holds a space or another character that may not be there");
    lower = name.toLowerCase();
  }
  let from = colon + 1;
  let to = lineEnd;
  while (from < to && isBlank(text.charCodeAt(from))) from += 1;
  while (to > from && isBlank(text.charCodeAt(to - 1))) to -= 1;
  return { name, lower, value: text.slice(from, to) };
}

function isBlank(code: number): boolean {
  return code === SPACE || code === TAB;
}

function checkRequestLine(head: RequestHead): void {
  if (!methods.has(head.method) && (head.method.length > METHOD_CHARS_MAX || !TOKEN.test(head.method))) {
    throw new HttpSyntaxError("the method is not a token");
  }
  if (!TARGET.test(head.target)) throw new HttpSyntaxError("the target is empty or holds a space, a # or a control character");
}

/** There is at most one statement of where the body ends. */
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
  if (encoding !== null && length !== null) throw new HttpSyntaxError("there is a Content-Length and a Transfer-Encoding");
  if ("method" in head && head.method === "CONNECT" && (encoding !== null || Number(length) > 0))
    throw new HttpSyntaxError("a CONNECT has a body");
  if (encoding !== null && head.version === "1.0") throw new HttpSyntaxError("HTTP/1.0 has no Transfer-Encoding");
}

function checkHost(head: RequestHead): void {
  let hosts = 0;
  for (const { lower } of head.headers) if (lower === "host") hosts += 1;
  if (hosts > 1) throw new HttpSyntaxError("there is more than one Host");
  if (hosts === 0 && head.version === "1.1") throw new HttpSyntaxError("there is no Host");
  requestTarget(head);
}

function withHeaders(line: string, headers: readonly Header[]): string {
  let text = line;
  for (const { name, value } of headers) {
    if (!usualNames.has(name) && !TOKEN.test(name)) throw new HttpSyntaxError("a header's name is not a token");
    if (UNCLEAN_VALUE.test(value)) throw new HttpSyntaxError(`the value of ${name} holds a character that may not be there`);
    text += `${name}: ${value}\r\n`;
  }
  return `${text}\r\n`;
}
