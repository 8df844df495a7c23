import { CaissonError } from "../../contract/error.ts";

/**
 * Values are text of single bytes (latin1), so that what came in goes out byte for byte; `lower` is the name in lower
 * case.
 */
export interface Header {
  readonly name: string;
  readonly lower: string;
  readonly value: string;
}
export type HttpVersion = "1.0" | "1.1";

/**
 * Something on the wire is not HTTP/1.1 as this code takes it. The message names what is wrong and never repeats the
 * bytes, which may hold a secret.
 */
export class HttpSyntaxError extends CaissonError {
  /** What the one who sent it is answered, when it was a request. */
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
 * No control character, no CR without LF and no LF without CR. Said as what may be there, since looking for what may
 * not takes more than twice as long.
 */
const CLEAN_LINES = /^(?:[\t\x20-\x7e\x80-\xff]*\r\n)*$/;
export const UNCLEAN_VALUE = /[^\t\x20-\x7e\x80-\xff]/;
const SPACE = 0x20;
const TAB = 0x09;

/** Names that nearly every head has, as they are usually written: they need no look at each character. */
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
 * Headers by which some servers take a request for one of another method or path: what was decided on would not be what
 * is done.
 */
export const methodOverrides: ReadonlySet<string> = new Set(["x-http-method-override", "x-http-method", "x-method-override"]);
export const pathOverrides: ReadonlySet<string> = new Set(["x-original-url", "x-rewrite-url"]);

/** A header as it was read: with no character that may not be there, so that it need not be looked at again. */
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

/** The text of a head, every character of which is one byte. */
export function cleanText(bytes: Buffer): string {
  if (bytes.length > HEAD_BYTES_MAX) throw new HttpSyntaxError(`the head is longer than ${HEAD_BYTES_MAX} bytes`, 431);
  const text = bytes.toString("latin1");
  if (!text.endsWith("\r\n")) throw new HttpSyntaxError("the head does not end in an empty line");
  if (!CLEAN_LINES.test(text)) throw new HttpSyntaxError("the head holds a control character, or a line that does not end in CR LF");
  return text;
}

/** The headers from `start` to the empty line, which must be the end. */
export function headersIn(text: string, start: number): Header[] {
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
  const colon = text.indexOf(":", at);
  if (colon === -1 || colon > lineEnd) throw new HttpSyntaxError("a header line has no colon");
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
  return new ReadHeader(name, lower, text.slice(from, to));
}

function isBlank(code: number): boolean {
  return code === SPACE || code === TAB;
}

/** A first line with its headers and the empty line. Throws rather than write what would be read as something else. */
export function withHeaders(line: string, headers: readonly Header[]): string {
  let text = line;
  for (const each of headers) {
    if (!(each instanceof ReadHeader)) checkHeader(each);
    text += `${each.name}: ${each.value}\r\n`;
  }
  return `${text}\r\n`;
}

function checkHeader({ name, value }: Header): void {
  if (!usualNames.has(name) && !TOKEN.test(name)) throw new HttpSyntaxError("a header's name is not a token");
  if (UNCLEAN_VALUE.test(value)) throw new HttpSyntaxError(`the value of ${name} holds a character that may not be there`);
}
