import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { type AddressInfo, connect, createServer as createTcpServer, type Server, type Socket } from "node:net";
import { type ConnectionOptions, TLSSocket, connect as tlsConnect } from "node:tls";
import { NetworkPolicy } from "../../contract/network/network.ts";
import { type Authority, createAuthority } from "../authority/authority.ts";
import { createEgress } from "./egress.ts";
import type { Egress, EgressOptions, EgressSecrets, NetworkEventInput } from "./egress-options.ts";

/** An egress with a real port to connect to, its own names, and servers that close with it. */
export interface EgressRig extends AsyncDisposable {
  egress: Egress;
  port: number;
  events: NetworkEventInput[];
  /** Name → addresses. Other names are not found. */
  names: Map<string, string[]>;
  /** The names that were looked up, in order. */
  lookedUp: string[];
  /** Signs the certificates of upstream servers, and is trusted by the egress. */
  world: Authority;
  /** The sandbox's own authority, trusted inside. */
  inside: Authority;
  setPolicy(policy: object): void;
  http(listener: RequestListener): Promise<number>;
  /** Starts a server with a certificate for `host` (default `site.test`), whatever name the client sends. */
  https(listener: RequestListener, options?: { authority?: Authority; host?: string }): Promise<number>;
  tcp(onSocket: (socket: Socket) => void): Promise<number>;
  /** Opens a raw connection to the proxy. */
  dial(): Promise<Socket>;
  /** Sends CONNECT and returns the head of the answer. The socket then carries the tunnel. */
  tunnel(target: string): Promise<{ socket: Socket; head: string }>;
  /** Opens TLS over a tunnel, as a program inside would. */
  secure(socket: Socket, servername: string, options?: ConnectionOptions): Promise<TLSSocket>;
  eventsOf<T extends NetworkEventInput["type"]>(type: T): Extract<NetworkEventInput, { type: T }>["data"][];
  /** Waits for the next event of this type. */
  event<T extends NetworkEventInput["type"]>(type: T): Promise<Extract<NetworkEventInput, { type: T }>["data"]>;
}

export const noSecrets: EgressSecrets = {
  placeholders: {},
  concerns: () => false,
  inject: async (head) => ({ head, used: [], withheld: [] }),
  answerRedactor: () => null,
  isRevoked: () => false,
};

export async function createEgressRig(
  options: Partial<EgressOptions> & { rules?: object[]; policy?: never; mode?: "allow" | "open" } = {},
): Promise<EgressRig> {
  const { rules = [], mode = "allow", ...overrides } = options;
  let policy = NetworkPolicy.parse({ mode, rules });
  const events: NetworkEventInput[] = [];
  const waiting: { type: string; resolve: (data: never) => void }[] = [];
  const names = new Map<string, string[]>();
  const lookedUp: string[] = [];
  const world = createAuthority();
  const inside = createAuthority();
  const servers: Server[] = [];
  const sockets = new Set<Socket>();
  const track = (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.once("close", () => sockets.delete(socket));
  };
  const egress = createEgress({
    sandbox: "sb_aaaaaaaaaaaa",
    policy: () => policy,
    secrets: noSecrets,
    authority: inside,
    emit(event) {
      events.push(event);
      const at = waiting.findIndex(({ type }) => type === event.type);
      if (at !== -1) waiting.splice(at, 1)[0]?.resolve(event.data as never);
    },
    howToAsk: (host, port) => `caisson net allow ${host}:${port}`,
    async resolve(name) {
      lookedUp.push(name);
      const found = names.get(name);
      if (found === undefined) throw Object.assign(new Error("there is no such name"), { code: "ENOTFOUND" });
      return found;
    },
    ownAddresses: () => [],
    upstreamCa: [world.certificatePem],
    ...overrides,
  });
  const listen = async (server: Server) => {
    servers.push(server);
    server.on("connection", track);
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return (server.address() as AddressInfo).port;
  };
  const port = await listen(createTcpServer({ allowHalfOpen: true }, (stream) => egress.handle({ stream, destination: null })));
  const dial = async () => {
    const socket = connect({ host: "127.0.0.1", port, allowHalfOpen: true });
    track(socket);
    await once(socket, "connect");
    return socket;
  };
  return {
    egress,
    port,
    events,
    names,
    lookedUp,
    world,
    inside,
    dial,
    setPolicy(next) {
      policy = NetworkPolicy.parse(next);
    },
    http: (listener) => listen(createServer(listener)),
    https(listener, { authority = world, host = "site.test" } = {}) {
      const server = createServer(listener);
      return listen(
        createTcpServer((socket) => {
          const tls = new TLSSocket(socket, { isServer: true, secureContext: authority.contextFor(host), ALPNProtocols: ["http/1.1"] });
          tls.on("error", () => {});
          server.emit("connection", tls);
        }),
      );
    },
    tcp: (onSocket) => listen(createTcpServer({ allowHalfOpen: true }, onSocket)),
    async tunnel(target) {
      const socket = await dial();
      socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\n`);
      return { socket, head: await readHead(socket) };
    },
    async secure(socket, servername, more = {}) {
      const tls = tlsConnect({ socket, servername, ca: [inside.certificatePem, world.certificatePem], ...more });
      track(tls);
      await once(tls, "secureConnect");
      return tls;
    },
    eventsOf: (type) => events.filter((event) => event.type === type).map(({ data }) => data) as never,
    event: (type) => new Promise((resolve) => waiting.push({ type, resolve: resolve as (data: never) => void })),
    async [Symbol.asyncDispose]() {
      await egress.close();
      for (const socket of sockets) socket.destroy();
      await Promise.all(servers.map((server) => new Promise((done) => server.close(done))));
    },
  };
}

/** Reads up to the empty line and leaves the rest in the stream. */
export function readHead(socket: Socket | TLSSocket): Promise<string> {
  return new Promise((resolve) => {
    let have = Buffer.alloc(0);
    const settle = (end: number) => {
      socket.off("data", took).off("close", closed).pause();
      if (have.length > end) socket.unshift(have.subarray(end));
      resolve(have.toString("latin1", 0, end));
    };
    const took = (chunk: Buffer) => {
      have = Buffer.concat([have, chunk]);
      const end = have.indexOf("\r\n\r\n");
      if (end !== -1) settle(end + 4);
    };
    const closed = () => settle(have.length);
    socket.on("data", took).on("close", closed).resume();
  });
}

/** Reads until the other side ends or resets the connection, and then ends ours. */
export function readAll(socket: Socket | TLSSocket): Promise<string> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    const done = () => {
      socket.end();
      resolve(Buffer.concat(chunks).toString("latin1"));
    };
    socket
      .on("data", (chunk: Buffer) => chunks.push(chunk))
      .once("end", done)
      .once("close", done)
      .resume();
  });
}
