import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";

/**
 * Control sequences that a terminal would obey: a title, a cleared screen, colors in two notations, reversed text, a
 * lost line.
 */
export const EVIL = "\x1b]0;taken\x07\x1b[2J\x1b[31mred\x9b31m\u202e\x85\r\x08";

export interface LyingStation extends AsyncDisposable {
  readonly url: string;
  /** Every request that arrived, with its method, path and body. */
  readonly heard: { method: string; path: string; body: string }[];
}

/**
 * A station between a client and a real one, which changes every JSON value in the real one's responses and event
 * streams. If `instead` returns JSON or bytes, that is the response.
 */
export async function startLyingStation(
  upstream: string,
  { change, instead = () => null }: { change: (value: unknown) => unknown; instead?: (path: string) => unknown },
): Promise<LyingStation> {
  const requests: LyingStation["heard"] = [];
  const server = createServer((incoming, outgoing) => {
    const parts: Buffer[] = [];
    incoming.on("data", (part: Buffer) => parts.push(part));
    incoming.once("end", () => {
      const body = Buffer.concat(parts);
      const { method = "", url: path = "" } = incoming;
      requests.push({ method, path, body: body.toString("latin1") });
      const own = instead(path);
      if (own === null) passOn(incoming, outgoing, { upstream, body, change });
      else if (own instanceof Uint8Array) outgoing.writeHead(200, { "content-type": "application/octet-stream" }).end(own);
      else outgoing.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(own));
    });
  });
  server.on("upgrade", (incoming, socket, head) => {
    const { port } = new URL(upstream);
    const to = connect(Number(port), "127.0.0.1", () => {
      const lines = incoming.rawHeaders.flatMap((name, at) => (at % 2 === 0 ? [`${name}: ${incoming.rawHeaders[at + 1]}`] : []));
      to.write(`${incoming.method} ${incoming.url} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`);
      to.write(head);
      to.pipe(socket).pipe(to);
    });
    to.on("error", () => socket.destroy());
    socket.on("error", () => to.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    heard: requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function passOn(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  { upstream, body, change }: { upstream: string; body: Buffer; change: (value: unknown) => unknown },
): void {
  const headers = { ...incoming.headers, "content-length": String(body.length) };
  delete (headers as Record<string, unknown>)["transfer-encoding"];
  const upstreamRequest = request(`${upstream}${incoming.url}`, { method: incoming.method, headers, agent: false }, (answer) => {
    const { "content-length": _, ...rest } = answer.headers;
    outgoing.writeHead(answer.statusCode ?? 500, rest);
    const type = answer.headers["content-type"] ?? "";
    const isEvents = type.includes("event-stream");
    if (!isEvents && !type.includes("json")) return void answer.pipe(outgoing);
    let text = "";
    answer.setEncoding("utf8").on("data", (piece: string) => {
      text += piece;
      if (!isEvents) return;
      const rows = text.split("\n");
      text = rows.pop() ?? "";
      for (const row of rows) outgoing.write(`${row.startsWith("data: ") ? `data: ${lied(row.slice(6), change)}` : row}\n`);
    });
    answer.once("end", () => outgoing.end(isEvents ? text : lied(text, change)));
  });
  upstreamRequest.once("error", () => outgoing.destroy());
  outgoing.once("close", () => upstreamRequest.destroy());
  upstreamRequest.end(body);
}

function lied(text: string, change: (value: unknown) => unknown): string {
  return text === "" ? "" : JSON.stringify(change(JSON.parse(text)));
}

/** Returns the value with `more` appended to every string for which `isChosen` returns true. */
export function withBehind(value: unknown, more: string, isChosen: (key: string, text: string) => boolean = () => true): unknown {
  const walk = (each: unknown, key: string): unknown => {
    if (typeof each === "string") return isChosen(key, each) ? each + more : each;
    if (Array.isArray(each)) return each.map((item) => walk(item, key));
    if (typeof each !== "object" || each === null) return each;
    return Object.fromEntries(Object.entries(each).map(([name, item]) => [name, walk(item, name)]));
  };
  return walk(value, "");
}
