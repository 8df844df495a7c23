import {
  request as ask,
  type ClientRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type RequestOptions,
  type ServerResponse,
} from "node:http";
import type { Duplex } from "node:stream";
import type { KeptPreview } from "../../contract/network-verbs.ts";
import type { ConnectionShare } from "../../lib/connection-shares.ts";
import type { PreviewNames } from "./preview-names.ts";

/** Requests by a preview's name: they are the preview's, and never reach the API or the console. */
export interface ServePreviews {
  /** Whether this request is for a preview, there or not. */
  takes(request: IncomingMessage): boolean;
  /** `connection` is kept for callers that the preview admits. */
  answer(request: IncomingMessage, response: ServerResponse, connection?: ConnectionShare): Promise<void>;
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, connection?: ConnectionShare): Promise<void>;
  /** Ends the sockets that were upgraded. */
  close(): void;
}

/** Of the preview's own cookie; a program inside cannot set one of this name. */
const COOKIE_PREFIX = "caisson-preview-";
/** The console frames it, maybe from another site; other pages that do have another jar. */
const FRAMED = "SameSite=None; Secure; Partitioned";

/** Said from one hop to the next, never passed on. */
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
 * Hands each request to the preview's own port, which wants the token (in the address at first, then in a cookie) and
 * asks the program inside as somebody beside it would.
 */
export function createServePreviews(names: PreviewNames, options: { previews(): Promise<readonly KeptPreview[]> }): ServePreviews {
  const upgraded = new Set<Duplex>();
  const find = async ({ headers, url = "" }: IncomingMessage): Promise<Found | null> => {
    const asked = names.idOf(headers.host ?? "");
    // A whole address in the first line would name a host of its own.
    if (asked === null || asked === "" || !url.startsWith("/")) return null;
    const found = (await options.previews()).find(({ id }) => id === asked);
    if (found === undefined) return null;
    const host = `127.0.0.1:${found.listenPort}`;
    return { port: found.listenPort, host, outer: names.originOf(found.id), inner: `http://${host}` };
  };
  return {
    takes: ({ headers }) => names.idOf(headers.host ?? "") !== null,
    async answer(request, response, connection) {
      const found = await find(request).catch(() => null);
      if (found === null) return refuse(response, 404, "There is no such preview: it was closed, or its sandbox is gone.\n");
      const passed = begun(passedOn(request, found));
      if (passed === null) return refuse(response, 400, "This is not a request for a page.\n");
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
          response.writeHead(answer.statusCode ?? 502, answer.statusMessage, answerHeaders(answer, found));
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
      const found = await find(request).catch(() => null);
      if (found === null) return void socket.end("HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
      const { connection: wishes = "Upgrade", upgrade = "" } = request.headers;
      const { headers, ...rest } = passedOn(request, found);
      const passed = begun({ ...rest, headers: [...headers, "Connection", wishes, "Upgrade", upgrade] });
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
      // It did not want a socket: what it says instead is the last of this connection.
      passed.once("response", (answer) => {
        const headers = [...answerHeaders(answer, found), "Connection", "close"];
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

/** Where a preview is on this machine, and both of its names as origins. */
interface Found {
  port: number;
  host: string;
  outer: string;
  inner: string;
}

/** Null for what cannot be asked. */
function begun(options: RequestOptions): ClientRequest | null {
  try {
    return ask(options);
  } catch {
    return null;
  }
}

function passedOn({ method, url, rawHeaders, headers }: IncomingMessage, { port, host, outer, inner }: Found) {
  const passed = ["Host", host];
  for (const [name, value] of kept(rawHeaders, headers)) {
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
  return kept(rawHeaders, headers).flatMap(([name, value]) => {
    const lower = name.toLowerCase();
    if (lower === "access-control-allow-origin" && value === inner) return [name, outer];
    return [name, lower === "set-cookie" && value.startsWith(COOKIE_PREFIX) ? value.replace("SameSite=Strict", FRAMED) : value];
  });
}

/** Without what is for this hop alone, by our own list or by the word of the one who sent it. */
function kept(rawHeaders: readonly string[], { connection = "" }: IncomingHttpHeaders): [name: string, value: string][] {
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
