import type { IncomingMessage, ServerResponse } from "node:http";
import { CaissonError } from "../../contract/error/error.ts";
import { ignore } from "../../lib/failures.ts";
import type { Found, Freshness } from "./resource.ts";

const STALLED_MS = 120_000;
const textHeaders = { "content-type": "text/plain; charset=utf-8", "cache-control": "no-store" };

/** Sends a short message. The reason phrase contains it as well, because some clients show nothing else. */
export function answerText(response: ServerResponse, status: number, text: string, headers: Record<string, string> = {}): void {
  const body = Buffer.from(`${text}\n`);
  response.writeHead(status, reasonOf(text), { ...textHeaders, ...headers, "content-length": body.length });
  response.end(response.req.method === "HEAD" ? undefined : body);
}

/** npm shows the `error` of a JSON answer; pip, cargo and apt show the reason phrase. */
export function answerError(response: ServerResponse, error: unknown): void {
  const { code, message, details } =
    error instanceof CaissonError ? error : new CaissonError("internal", "the mirror failed", { cause: error });
  // Most clients retry a 5xx for half a minute, which is useless if the mirror is offline on purpose.
  const status = details?.offline === true ? 403 : code === "busy" ? 503 : code === "no_space" ? 507 : 502;
  const json = /\bjson\b/.test(response.req.headers.accept ?? "");
  const text = `caisson mirror: ${message}`;
  if (json) answerJson(response, status, text);
  else answerText(response, status, text);
}

function answerJson(response: ServerResponse, status: number, text: string): void {
  const body = Buffer.from(`${JSON.stringify({ error: text })}\n`);
  response.writeHead(status, reasonOf(text), {
    "content-type": "application/json",
    "cache-control": "no-store",
    "content-length": body.length,
  });
  response.end(response.req.method === "HEAD" ? undefined : body);
}

/**
 * Sends the content, or the requested part of it, and closes it. If the content breaks off, breaks off the connection
 * too, so that no client considers the content complete, and returns the error. If not even the beginning is available,
 * throws before anything is sent.
 */
export async function answerFound(answer: FoundAnswer): Promise<{ bytes: number; error: unknown }> {
  const { request, response, found } = answer;
  const sent = { bytes: 0, error: null as unknown };
  try {
    const { status, headers, content } = headOf(answer);
    const parts = request.method === "HEAD" ? undefined : content?.[Symbol.asyncIterator]();
    const first = await parts?.next();
    response.writeHead(status, headers);
    if (parts === undefined || first === undefined) response.end();
    else {
      await pump(parts, { first, response, sent }).catch((error: unknown) => {
        sent.error = error;
        response.destroy();
      });
    }
  } finally {
    await found.close();
  }
  return sent;
}

interface FoundAnswer {
  request: IncomingMessage;
  response: ServerResponse;
  found: Found;
  keeps: "always" | "shortly";
}

interface Head {
  status: number;
  headers: Record<string, string | number>;
  content: AsyncIterable<Buffer> | null;
}

function headOf({ request, found, keeps }: FoundAnswer): Head {
  const headers = headersOf(found, keeps);
  if (isUnchanged(request, found)) {
    const { "content-length": _length, "content-type": _type, ...rest } = headers;
    return { status: 304, headers: rest, content: null };
  }
  const range = rangeOf(request, found);
  if (range === null) return { status: 200, headers, content: found.read() };
  if (range === "unsatisfiable") {
    return { status: 416, headers: { ...headers, "content-length": 0, "content-range": `bytes */${found.bytes}` }, content: null };
  }
  const { start, end } = range;
  const partly = { "content-length": end - start, "content-range": `bytes ${start}-${end - 1}/${found.bytes}` };
  return { status: 206, headers: { ...headers, ...partly }, content: found.read(range) };
}

function headersOf(found: Found, keeps: "always" | "shortly"): Record<string, string | number> {
  return {
    "content-type": found.contentType,
    "cache-control": keeps === "always" ? "public, max-age=31536000, immutable" : "no-cache",
    ...freshnessHeader(found.freshness),
    ...(found.bytes === null ? {} : { "content-length": found.bytes }),
    ...(found.sha256 === null ? {} : { etag: `"${found.sha256.slice(0, 32)}"`, "accept-ranges": "bytes" }),
    ...(found.lastModified === null ? {} : { "last-modified": found.lastModified }),
  };
}

export function freshnessHeader(freshness: Freshness): Record<string, string> {
  return { "x-caisson-cache": freshness };
}

function isUnchanged({ headers }: IncomingMessage, { sha256, lastModified }: Found): boolean {
  const tags = headers["if-none-match"];
  if (tags !== undefined) {
    return sha256 !== null && tags.split(",").some((tag) => [`"${sha256.slice(0, 32)}"`, "*"].includes(tag.trim().replace(/^W\//, "")));
  }
  const since = Date.parse(headers["if-modified-since"] ?? "");
  return lastModified !== null && Date.parse(lastModified) <= since;
}

/** Returns one range of complete content. Any other range request gets the whole. */
function rangeOf({ headers }: IncomingMessage, found: Found): { start: number; end: number } | "unsatisfiable" | null {
  const [, first = "", last = ""] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(headers.range ?? "") ?? [];
  if (found.sha256 === null || found.bytes === null || (first === "" && last === "")) return null;
  const condition = headers["if-range"];
  if (condition !== undefined && condition !== `"${found.sha256.slice(0, 32)}"` && condition !== found.lastModified) return null;
  const start = first === "" ? Math.max(0, found.bytes - Number(last)) : Number(first);
  const end = first === "" || last === "" ? found.bytes : Math.min(found.bytes, Number(last) + 1);
  return start < end ? { start, end } : "unsatisfiable";
}

interface Pumping {
  first: IteratorResult<Buffer, unknown>;
  response: ServerResponse;
  sent: { bytes: number };
}

/** Sends at the client's pace. Throws if the client disconnects, or accepts nothing for too long. */
async function pump(parts: AsyncIterator<Buffer>, { first, response, sent }: Pumping): Promise<void> {
  const disconnection = Promise.withResolvers<never>();
  void ignore(disconnection.promise, "awaited in the races below");
  const onGone = () => disconnection.reject(new CaissonError("cancelled", "the client disconnected"));
  let full = false;
  const stalled = setInterval(() => full && onGone(), STALLED_MS);
  response.once("close", onGone);
  try {
    for (let part = first; part.done !== true; ) {
      if (response.destroyed) throw new CaissonError("cancelled", "the client disconnected");
      sent.bytes += part.value.length;
      full = !response.write(part.value);
      // Reads ahead while this part is sent. If the client disconnects, we do not wait for it.
      const next = parts.next();
      void ignore(next, "awaited below, unless the client disconnects first");
      stalled.refresh();
      if (full) await Promise.race([new Promise<void>((resolve) => response.once("drain", resolve)), disconnection.promise]);
      full = false;
      part = await Promise.race([next, disconnection.promise]);
    }
    response.end();
  } finally {
    clearInterval(stalled);
    response.removeListener("close", onGone);
  }
}

/** Removes line breaks and non-ASCII characters, which a reason phrase cannot contain. */
function reasonOf(text: string): string {
  return text.replaceAll(/[^\x20-\x7e]/g, " ").slice(0, 200);
}
