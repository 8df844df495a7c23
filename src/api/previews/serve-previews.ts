import {
  request as ask,
  type ClientRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type RequestOptions,
  type ServerResponse,
} from "node:http";
import type { Duplex } from "node:stream";
import type { KeptPreview } from "../../contract/network/network-verbs.ts";
import type { ConnectionShare } from "../../lib/connection-shares.ts";
import { ignore, ignoring } from "../../lib/failures.ts";
import type { PreviewNames } from "./preview-names.ts";

/** Serves requests to preview names. They belong to the preview, and never reach the API or the console. */
export interface ServePreviews {
  /** Whether this request is for a preview name, even for a missing preview. */
  takes(request: IncomingMessage): boolean;
  /** Answers a request. `connection` stays open for callers that the preview admits. */
  answer(request: IncomingMessage, response: ServerResponse, connection?: ConnectionShare): Promise<void>;
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, connection?: ConnectionShare): Promise<void>;
  /** Ends the upgraded sockets. */
  close(): void;
}

/** The name prefix of a preview's own cookie. A program inside cannot set a cookie of this name. */
const COOKIE_PREFIX = "caisson-preview-";
/** The console frames previews, possibly from another site. Frames in other pages have a separate cookie jar. */
const FRAMED = "SameSite=None; Secure; Partitioned";

/** Headers for a single hop, which are never passed on. */
const hopByHop: ReadonlySet<string> = new Set([
  ...[
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authenticate",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
  ],
]);

/**
 * Passes each request to the preview's own port, which requires the token (first in the URL, then in a cookie) and
 * forwards the request to the program inside like a local one.
 */
export function createServePreviews(names: PreviewNames, options: { previews(): Promise<readonly KeptPreview[]> }): ServePreviews {
  const upgraded = new Set<Duplex>();
  const find = async ({ headers, url = "" }: IncomingMessage): Promise<Found | null> => {
    const name = names.idOf(headers.host ?? "");
    // A full URL in the request line would name another host.
    if (name === null || name === "" || !url.startsWith("/")) return null;
    const preview = (await options.previews()).find(({ id }) => id === name);
    if (preview === undefined) return null;
    const host = `127.0.0.1:${preview.listenPort}`;
    return { port: preview.listenPort, host, outer: names.originOf(preview.id), inner: `http://${host}` };
  };
  return {
    takes: ({ headers }) => names.idOf(headers.host ?? "") !== null,
    async answer(request, response, connection) {
      const preview = await ignore(find(request), "answered below");
      if (preview === undefined) return refuse(response, 502, "The preview cannot be reached.\n");
      if (preview === null) return refuse(response, 404, "There is no such preview: it was closed, or its sandbox was removed.\n");
      const passed = requestOrNull(passedOn(request, preview));
      if (passed === null) return refuse(response, 400, "This is not a valid page request.\n");
      const fail = () => {
        passed.destroy();
        if (response.headersSent) response.destroy();
        else refuse(response, 502, "The preview cannot be reached.\n");
      };
      passed.on("error", fail);
      passed.once("response", (answer) => {
        answer.on("error", fail);
        if (isRefused(answer) || connection?.admit() === false) response.shouldKeepAlive = false;
        try {
          response.sendDate = false;
          response.writeHead(answer.statusCode ?? 502, answer.statusMessage, answerHeaders(answer, preview));
        } catch {
          return fail();
        }
        answer.pipe(response);
      });
      response.once("close", () => passed.destroy());
      request.on("error", () => passed.destroy());
      request.pipe(passed);
    },
    async upgrade(request, socket, head, connection) {
      socket.on("error", () => {});
      const preview = await ignore(find(request), "answered below");
      if (preview === undefined) return void socket.end("HTTP/1.1 502 Bad Gateway\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
      if (preview === null) return void socket.end("HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
      const { connection: wishes = "Upgrade", upgrade = "" } = request.headers;
      const { headers, ...rest } = passedOn(request, preview);
      const passed = requestOrNull({ ...rest, headers: [...headers, "Connection", wishes, "Upgrade", upgrade] });
      if (passed === null) return void socket.destroy();
      const end = () => {
        upgraded.delete(socket);
        passed.destroy();
        socket.destroy();
      };
      upgraded.add(socket);
      socket.once("close", end);
      passed.on("error", end);
      passed.once("upgrade", (answer, inside, first) => {
        inside.on("error", end).once("close", end);
        if (connection?.admit() === false) return end();
        socket.write(`HTTP/1.1 101 Switching Protocols\r\n${linesOf(answer.rawHeaders)}\r\n`, "latin1");
        socket.write(first);
        inside.write(head);
        inside.pipe(socket).pipe(inside);
      });
      // The program did not upgrade. Its answer is the last on this connection.
      passed.once("response", (answer) => {
        const headers = [...answerHeaders(answer, preview), "Connection", "close"];
        socket.write(`HTTP/1.1 ${answer.statusCode} ${answer.statusMessage}\r\n${linesOf(headers)}\r\n`, "latin1");
        answer.on("error", end).pipe(socket);
      });
      passed.end();
    },
    close() {
      for (const socket of upgraded) socket.destroy();
    },
  };
}

/** A caller without the preview's token gets no second request on its connection. */
const isRefused = ({ statusCode }: IncomingMessage): boolean => statusCode === 401;

/** The local port of a preview, and its outer and inner origins. */
interface Found {
  port: number;
  host: string;
  outer: string;
  inner: string;
}

/** Returns null for a request that cannot be sent. */
function requestOrNull(options: RequestOptions): ClientRequest | null {
  return ignoring("the caller learns that this is not a request", () => ask(options)) ?? null;
}

function passedOn({ method, url, rawHeaders, headers }: IncomingMessage, { port, host, outer, inner }: Found) {
  const passed = ["Host", host];
  for (const [name, value] of endToEndHeaders(rawHeaders, headers)) {
    const lower = name.toLowerCase();
    if (lower === "host") continue;
    const isOwn = (lower === "origin" || lower === "referer") && (value === outer || value.startsWith(`${outer}/`));
    passed.push(name, isOwn ? `${inner}${value.slice(outer.length)}` : value);
  }
  const isChunked = headers["transfer-encoding"] !== undefined;
  return {
    ...{ host: "127.0.0.1", port, method, path: url, agent: false as const, setHost: false },
    headers: isChunked ? [...passed, "Transfer-Encoding", "chunked"] : passed,
  };
}

function answerHeaders({ rawHeaders, headers }: IncomingMessage, { outer, inner }: Found): string[] {
  return endToEndHeaders(rawHeaders, headers).flatMap(([name, value]) => {
    const lower = name.toLowerCase();
    if (lower === "access-control-allow-origin" && value === inner) return [name, outer];
    return [name, lower === "set-cookie" && value.startsWith(COOKIE_PREFIX) ? value.replace("SameSite=Strict", FRAMED) : value];
  });
}

/**
 * Removes the headers for this hop alone, both the known ones and those that the sender's `Connection` header names.
 */
function endToEndHeaders(rawHeaders: readonly string[], { connection = "" }: IncomingHttpHeaders): [name: string, value: string][] {
  const named = new Set(connection.split(",").map((each) => each.trim().toLowerCase()));
  const pairs: [string, string][] = [];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    const lower = name.toLowerCase();
    const isForHop = hopByHop.has(lower) || (named.has(lower) && lower !== "content-length");
    if (!isForHop) pairs.push([name, rawHeaders[at + 1] as string]);
  }
  return pairs;
}

const linesOf = (headers: readonly string[]): string =>
  Array.from({ length: headers.length / 2 }, (_, at) => `${headers[2 * at]}: ${headers[2 * at + 1]}\r\n`).join("");

function refuse(response: ServerResponse, status: number, text: string): void {
  response
    .writeHead(status, { "content-type": "text/plain; charset=utf-8", "x-content-type-options": "nosniff", connection: "close" })
    .end(text);
}
