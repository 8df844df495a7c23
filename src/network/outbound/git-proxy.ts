import { randomBytes, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, request as requestHttp, type ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { lookupOf, pinnedAddress } from "./pinned-address.ts";

/** For the connection to one address. git itself limits the whole fetch. */
const CONNECT_TIMEOUT_MS = 20_000;
const CONNECTIONS_MAX = 32;

export interface GitProxy extends AsyncDisposable {
  /** Contains the secret, so it is only for the environment of one program. */
  url: string;
  /** Returns why the host's address was refused, or null. */
  refusal(): string | null;
}

export interface GitProxyOptions {
  /** The only host and port that it connects to. */
  to: URL;
  allowPrivate: boolean;
  resolve: (name: string) => Promise<string[]>;
}

/**
 * A proxy on the loopback interface for one fetch by a program that would otherwise resolve the address itself. It
 * connects to only one host and port, at a checked address, and refuses the redirects and alternates that a server
 * names. Without TLS it reaches only private addresses.
 */
export async function openGitProxy({ to, allowPrivate, resolve }: GitProxyOptions): Promise<GitProxy> {
  const secret = randomBytes(24).toString("base64url");
  const expected = Buffer.from(`Basic ${Buffer.from(`caisson:${secret}`).toString("base64")}`);
  const isClear = to.protocol === "http:";
  const target = hostAndPort(to);
  const sockets = new Set<Socket>();
  let refusal: string | null = null;
  const isKnown = ({ headers }: IncomingMessage) => {
    const authorization = Buffer.from(headers["proxy-authorization"] ?? "");
    return authorization.length === expected.length && timingSafeEqual(authorization, expected);
  };
  /** Returns the address, or the HTTP status of the refusal. */
  const addressOf = async (destination: string | null): Promise<string | number> => {
    if (destination !== target) return 403;
    const address = await pinnedAddress(to, { allowPrivate, refusePublic: isClear, resolve });
    if (typeof address === "string") return address;
    if (address.isForbidden) refusal = address.error;
    return address.isForbidden ? 403 : 502;
  };

  const server = createServer({ maxHeaderSize: 64 * 1024 });
  server.maxConnections = CONNECTIONS_MAX;
  server.on("connection", (socket) => keep(sockets, socket));
  server.on("connect", (request: IncomingMessage, socket: Socket, head: Buffer) => {
    socket.on("error", () => socket.destroy());
    const refuse = (status: number) => socket.end(`HTTP/1.1 ${status} Refused\r\nConnection: close\r\n\r\n`);
    if (!isKnown(request)) return refuse(407);
    void addressOf(isClear ? null : (request.url ?? "").toLowerCase()).then((address) => {
      if (typeof address === "number") return refuse(address);
      const upstream = connect({ host: address, port: Number(portOf(to)), noDelay: true, timeout: CONNECT_TIMEOUT_MS });
      keep(sockets, upstream);
      upstream.on("error", () => socket.destroy());
      upstream.once("timeout", () => upstream.destroy(new Error("late")));
      upstream.once("connect", () => {
        upstream.setTimeout(0);
        socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
        upstream.write(head);
        socket.pipe(upstream).pipe(socket);
      });
      upstream.once("close", () => socket.destroy());
      socket.once("close", () => upstream.destroy());
    });
  });
  server.on("request", (request: IncomingMessage, response: ServerResponse) => {
    response.on("error", () => {});
    if (!isKnown(request)) return void response.writeHead(407).end();
    const url = URL.canParse(request.url ?? "") ? new URL(request.url ?? "") : null;
    const destination = isClear && url !== null && url.protocol === "http:" ? hostAndPort(url) : null;
    void addressOf(destination).then((address) => {
      if (typeof address === "number" || url === null) return void response.writeHead(Number(address)).end();
      const { "proxy-authorization": _, "proxy-connection": __, ...headers } = request.headers;
      const sent = requestHttp(url, {
        method: request.method,
        headers,
        agent: false,
        lookup: lookupOf(address),
        timeout: CONNECT_TIMEOUT_MS,
      });
      sent.on("socket", (socket) => keep(sockets, socket));
      sent.on("error", () => response.destroy());
      sent.on("response", (answer) => {
        answer.on("error", () => response.destroy());
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(response);
      });
      request.pipe(sent);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://caisson:${secret}@127.0.0.1:${(server.address() as AddressInfo).port}`,
    refusal: () => refusal,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((done) => server.close(done));
    },
  };
}

function keep(sockets: Set<Socket>, socket: Socket): void {
  sockets.add(socket);
  socket.once("close", () => sockets.delete(socket));
}

const portOf = ({ port, protocol }: URL): string => (port !== "" ? port : protocol === "https:" ? "443" : "80");
const hostAndPort = (url: URL): string => `${url.hostname.toLowerCase()}:${portOf(url)}`;
