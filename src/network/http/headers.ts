import { CaissonError } from "../../contract/error/error.ts";

/**
 * Values are text of single bytes (latin1), so they leave exactly as they arrived. `lower` is the name in lower case.
 */
export interface Header {
  readonly name: string;
  readonly lower: string;
  readonly value: string;
}
export type HttpVersion = "1.0" | "1.1";

/**
 * The input is not HTTP/1.1 as this code accepts it. The message names the problem and never repeats the bytes, which
 * may contain a secret.
 */
export class HttpSyntaxError extends CaissonError {
  /** The status for the sender, if the input was a request. */
  readonly status: number;

  constructor(message: string, status = 400) {
    super("invalid", message);
    this.status = status;
  }
}

export const HEAD_BYTES_MAX = 65_536;
export const HEADERS_MAX = 200;
export const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/**
 * No control character, no CR without LF and no LF without CR. The pattern lists the allowed characters, because
 * searching for the forbidden ones takes more than twice as long.
 */
const CLEAN_LINES = /^(?:[\t\x20-\x7e\x80-\xff]*\r\n)*$/;
export const UNCLEAN_VALUE = /[^\t\x20-\x7e\x80-\xff]/;
const SPACE = 0x20;
const TAB = 0x09;

/** The most frequent names in their usual spelling, which need no check of each character. */
const usualNames = new Map<string, string>(
  [
    ..."Accept Accept-Encoding Accept-Language Accept-Ranges Access-Control-Allow-Origin Age Authorization Cache-Control Connection".split(
      " ",
    ),
    ..."Content-Disposition Content-Encoding Content-Length Content-Type Cookie Date ETag Expect Expires Host If-Modified-Since".split(" "),
    ..."If-None-Match Keep-Alive Last-Modified Location Origin Pragma Proxy-Authorization Proxy-Connection Range Referer Server".split(" "),
    ..."Sec-CH-UA Sec-CH-UA-Mobile Sec-CH-UA-Platform Sec-Fetch-Dest Sec-Fetch-Mode Sec-Fetch-Site Sec-Fetch-User Set-Cookie".split(" "),
    ..."TE Trailer Transfer-Encoding Upgrade Upgrade-Insecure-Requests User-Agent Vary Via X-Forwarded-For X-Requested-With".split(" "),
  ].flatMap((name) => [
    [name, name.toLowerCase()],
    [name.toLowerCase(), name.toLowerCase()],
  ]),
);

/**
 * Headers that make some servers treat a request as if it had another method or path, which we may not have allowed.
 */
export const methodOverrides: ReadonlySet<string> = new Set(["x-http-method-override", "x-http-method", "x-method-override"]);
export const pathOverrides: ReadonlySet<string> = new Set(["x-original-url", "x-rewrite-url"]);

/** A parsed header. Its characters were checked, so they need no second check. */
class ReadHeader implements Header {
  readonly name: string;
  readonly lower: string;
  readonly value: string;

  constructor(name: string, lower: string, value: string) {
    this.name = name;
    this.lower = lower;
    this.value = value;
  }
}

/** Creates a header to send. It is checked when it is encoded. */
export function header(name: string, value: string): Header {
  return { name, lower: usualNames.get(name) ?? name.toLowerCase(), value };
}

/** Returns the value of the first header of this name (in lower case). */
export function headerValue(head: { headers: readonly Header[] }, lower: string): string | undefined {
  for (const header of head.headers) if (header.lower === lower) return header.value;
  return undefined;
}

/** Parses header lines up to and including the empty one, for heads and trailers. Throws `HttpSyntaxError`. */
export function parseHeaderLines(bytes: Buffer): Header[] {
  return headersIn(cleanText(bytes), 0);
}

/** Returns the text of a head, with one byte per character. */
export function cleanText(bytes: Buffer): string {
  if (bytes.length > HEAD_BYTES_MAX) throw new HttpSyntaxError(`the head is longer than ${HEAD_BYTES_MAX} bytes`, 431);
  const text = bytes.toString("latin1");
  if (!text.endsWith("\r\n")) throw new HttpSyntaxError("the head does not end in an empty line");
  if (!CLEAN_LINES.test(text)) throw new HttpSyntaxError("the head contains a control character, or a line that does not end in CR LF");
  return text;
}

/** Returns the headers from `start` to the empty line, which must end the text. */
export function headersIn(text: string, start: number): Header[] {
  const headers: Header[] = [];
  for (let at = start; ; ) {
    const lineEnd = text.indexOf("\r\n", at);
    if (lineEnd === -1) throw new HttpSyntaxError("the head does not end in an empty line");
    if (lineEnd === at) {
      if (at + 2 !== text.length) throw new HttpSyntaxError("there is more data after the empty line");
      return headers;
    }
    if (headers.length === HEADERS_MAX) throw new HttpSyntaxError(`there are more than ${HEADERS_MAX} headers`, 431);
    headers.push(headerIn(text, at, lineEnd));
    at = lineEnd + 2;
  }
}

function headerIn(text: string, at: number, lineEnd: number): Header {
  const colon = text.indexOf(":", at);
  if (colon === -1 || colon > lineEnd) throw new HttpSyntaxError("a header line has no colon");
  const name = text.slice(at, colon);
  let lower = usualNames.get(name);
  if (lower === undefined) {
    if (!TOKEN.test(name)) throw new HttpSyntaxError("a header name is empty, folded, or contains a space or another invalid character");
    lower = name.toLowerCase();
  }
  let from = colon + 1;
  let to = lineEnd;
  while (from < to && isBlank(text.charCodeAt(from))) from += 1;
  while (to > from && isBlank(text.charCodeAt(to - 1))) to -= 1;
  return new ReadHeader(name, lower, text.slice(from, to));
}

function isBlank(code: number): boolean {
  return code === SPACE || code === TAB;
}

/**
 * Joins a first line, its headers and the empty line. Throws rather than write something that would be read
 * differently.
 */
export function withHeaders(line: string, headers: readonly Header[]): string {
  let text = line;
  for (const each of headers) {
    if (!(each instanceof ReadHeader)) checkHeader(each);
    text += `${each.name}: ${each.value}\r\n`;
  }
  return `${text}\r\n`;
}

function checkHeader({ name, value }: Header): void {
  if (!usualNames.has(name) && !TOKEN.test(name)) throw new HttpSyntaxError("a header name is not a token");
  if (UNCLEAN_VALUE.test(value)) throw new HttpSyntaxError(`the value of ${name} contains an invalid character`);
}
