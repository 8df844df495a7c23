/**
 * All servers of one side of the rig, in one process. The test starts it inside a network namespace and uses Node's IPC
 * channel: the first message is `ServersOptions`, and each later one a `Call`. Ends with the channel.
 */
import { readFileSync } from "node:fs";
import { createServer as createHttpServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { createServer as createTcpServer, type Server, type Socket } from "node:net";
import { createSecureContext, type TLSSocket } from "node:tls";
import { serveGit } from "../git-http-backend.ts";
import { type NameServer, startNameServer } from "./name-server.ts";
import { npmShelf } from "./registries/npm-shelf.ts";
import { pypiShelf } from "./registries/pypi-shelf.ts";
import { someContents } from "./registries/registry-server.ts";
import type { Shelf } from "./registries/shelf.ts";
import type { Call, CallAnswer, SeenConnection, SeenRequest, ServersCalls, ServersOptions } from "./servers-calls.ts";
import { answerWeb, answerWebSocket, readBody } from "./web-handler.ts";

const FLOOD_BLOCK = Buffer.alloc(1024 * 1024, "flood");
/** Further requests are only counted. */
const SEEN_MAX = 20_000;

let requests: SeenRequest[] = [];
let connections: SeenConnection[] = [];
let hellos: string[] = [];
let floodedBytes = 0;
let names: NameServer | null = null;
const sockets = new Set<Socket>();

process.once("message", (options: ServersOptions) => {
  start(options).then(
    () => {
      process.on("message", (call: Call) => process.send?.(answer(call)));
      process.send?.({ id: 0, result: "ready" } satisfies CallAnswer);
    },
    (error: unknown) => process.send?.({ id: 0, error: String((error as Error).stack ?? error) } satisfies CallAnswer),
  );
});
process.once("disconnect", () => process.exit(0));

const calls: ServersCalls = {
  seen({ take = false } = {}) {
    const all = { requests, connections, hellos, questions: take ? (names?.questions() ?? []) : [] };
    if (take) [requests, connections, hellos] = [[], [], []];
    return all;
  },
  packets: countPackets,
  setName: (name, answers) => names?.set(name, answers),
  open: countEstablished,
  reset() {
    for (const socket of sockets) socket.resetAndDestroy();
  },
  floodedBytes: () => floodedBytes,
};

function answer({ id, call, args }: Call): CallAnswer {
  try {
    return { id, result: (calls[call] as (...args: unknown[]) => unknown)(...args) };
  } catch (error) {
    return { id, error: String(error) };
  }
}

async function start(options: ServersOptions): Promise<void> {
  if (options.names) names = await startNameServer(options.names);
  const handler = webHandler(options);
  for (const port of options.http) await listen(web(createHttpServer({ keepAliveTimeout: 60_000 }, handler)), port);
  for (const port of options.https) await listen(web(createTlsServer(options, handler)), port);
  for (const port of options.tcpEcho)
    await listen(
      createTcpServer({ allowHalfOpen: true }, (socket) => void socket.pipe(socket)),
      port,
    );
  for (const port of options.tcpMute) await listen(createTcpServer({ pauseOnConnect: true, allowHalfOpen: true }), port);
  for (const port of options.tcpFlood) await listen(createTcpServer(flood), port);
}

function createTlsServer(options: ServersOptions, handler: RequestListener) {
  const { identities } = options;
  if (identities === undefined) throw new Error("https needs identities");
  const contexts = new Map(
    Object.entries(identities).map(([name, { keyPem, certificatePem }]) => [
      name,
      createSecureContext({ key: keyPem, cert: certificatePem }),
    ]),
  );
  const { keyPem: key, certificatePem: cert } = identities.good;
  return createHttpsServer(
    {
      key,
      cert,
      keepAliveTimeout: 60_000,
      SNICallback: (name, done) => {
        hellos.push(name);
        done(null, contexts.get(options.identityOf?.[name] ?? "good"));
      },
    },
    handler,
  );
}

function web<Kind extends ReturnType<typeof createHttpServer>>(server: Kind): Kind {
  server.on("upgrade", (request: IncomingMessage, socket: Socket) => {
    remember(request, "");
    answerWebSocket(request, socket);
  });
  server.on("tlsClientError", () => {});
  server.requestTimeout = 0;
  return server;
}

function webHandler(options: ServersOptions): RequestListener {
  const { git } = options;
  const shelves = options.registries ? shelvesOf(options.registries) : new Map<string, Shelf>();
  return (request: IncomingMessage, response: ServerResponse) => {
    response.on("error", () => {});
    const shelf = shelves.get(request.headers.host ?? "");
    if (shelf !== undefined) {
      remember(request, "");
      answerFromShelf(shelf, request, response);
      return;
    }
    if (git && /^\/[\w/-]+\.git\//.test(request.url ?? "")) {
      remember(request, "");
      answerGit(git, request, response);
      return;
    }
    readBody(request).then(
      async (body) => {
        remember(request, body.text);
        await answerWeb(request, response, body);
      },
      // The client has disconnected.
      () => response.destroy(),
    );
  };
}

function shelvesOf({ npm, pypi }: NonNullable<ServersOptions["registries"]>): Map<string, Shelf> {
  return new Map([
    [npm, npmShelf(`https://${npm}/`, someContents.npm)],
    [pypi, pypiShelf(`https://${pypi}/`, someContents.pypi)],
  ]);
}

function answerFromShelf(shelf: Shelf, request: IncomingMessage, response: ServerResponse): void {
  const item = shelf.get(decodeURIComponent(request.url ?? "").replace(/^\/|\?.*$/g, ""));
  if (item === undefined) return void response.writeHead(404).end("not here\n");
  const { type, body } = typeof item === "function" ? item(request.headers) : item;
  response.writeHead(200, { "content-type": type, "content-length": body.length }).end(body);
}

/** Every client may read what is not under `private/`. Everything else needs the token. */
function answerGit(git: NonNullable<ServersOptions["git"]>, request: IncomingMessage, response: ServerResponse): void {
  const wanted = `Basic ${Buffer.from(`${git.username}:${git.token}`).toString("base64")}`;
  const guarded = (request.url ?? "").startsWith("/private/") || (request.url ?? "").includes("git-receive-pack");
  if (guarded && request.headers.authorization !== wanted) {
    response.writeHead(401, { "www-authenticate": 'Basic realm="git"' }).end("who are you?\n");
    return;
  }
  serveGit({ folder: git.folder, user: guarded ? git.username : null }, request, response);
}

function remember(request: IncomingMessage, body: string): void {
  if (requests.length >= SEEN_MAX) return;
  const socket = request.socket as Socket & Partial<TLSSocket>;
  requests.push({
    address: plain(socket.localAddress),
    port: socket.localPort ?? 0,
    tls: socket.encrypted === true,
    servername: (socket as { servername?: string | false }).servername || null,
    method: request.method ?? "",
    path: request.url ?? "",
    headers: request.headers as Record<string, string>,
    rawHeaders: request.rawHeaders,
    body,
  });
}

function flood(socket: Socket): void {
  const more = () => {
    do floodedBytes += FLOOD_BLOCK.length;
    while (!socket.destroyed && socket.write(FLOOD_BLOCK));
  };
  socket.on("drain", more);
  more();
}

async function listen(server: Server, port: number): Promise<void> {
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    socket.on("error", () => {});
    if (connections.length < SEEN_MAX) connections.push({ address: plain(socket.localAddress), port });
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ port, host: "::", backlog: 4096 }, resolve);
  });
}

function plain(address: string | undefined): string {
  return (address ?? "").replace(/^::ffff:/, "");
}

/** Counts connections in the kernel, since an unread socket does not notice that its peer has disconnected. */
function countEstablished(): number {
  const lines = ["tcp", "tcp6"].flatMap((name) => readFileSync(`/proc/self/net/${name}`, "latin1").split("\n").slice(1));
  return lines.filter((line) => line.trim().split(/\s+/)[3] === "01").length;
}

function countPackets(): number {
  const four = /^Ip: (\d.*)$/m.exec(readFileSync("/proc/self/net/snmp", "utf8"))?.[1]?.split(" ");
  const six = Object.fromEntries(
    readFileSync("/proc/self/net/snmp6", "utf8")
      .split("\n")
      .map((line) => line.split(/\s+/) as [string, string]),
  );
  // IPv6 announces its multicast groups to its neighbors unasked.
  return Number(four?.[2] ?? Number.NaN) + Number(six.Ip6InReceives) - Number(six.Ip6InMcastPkts);
}
