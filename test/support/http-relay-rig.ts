import { createServer, connect as netConnect, type Server, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { onTestFinished } from "vitest";
import type { RequestHead } from "../../src/network/http/head.ts";
import { UpstreamPool } from "../../src/network/http/pool.ts";
import { relayHttp } from "../../src/network/http/relay.ts";
import type { ForwardVerdict, RelayOptions, RequestOutcome } from "../../src/network/http/relay-options.ts";

/** A relay between real sockets: a port for clients, and an upstream that passes each connection to `upstream`. */
export interface RelayRig extends AsyncDisposable {
  readonly outcomes: RequestOutcome[];
  readonly pool: UpstreamPool;
  /** The relay's connections to the upstream, oldest first. */
  readonly upstreams: Socket[];
  /** Resolves when the relays of all clients so far have ended. */
  settled(): Promise<unknown>;
  connect(): Promise<TestClient>;
}

export interface RelayRigOptions extends Partial<RelayOptions> {
  upstream: (socket: Socket, index: number) => void;
  forward?: (head: RequestHead) => Partial<ForwardVerdict>;
}

export async function startRelayRig(options: RelayRigOptions): Promise<RelayRig> {
  const { upstream, forward, ...relayOptions } = options;
  const pool = options.pool ?? new UpstreamPool();
  const outcomes: RequestOutcome[] = [];
  const upstreams: Socket[] = [];
  const relays: Promise<void>[] = [];
  const sockets = new Set<Socket>();
  const track = (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.once("close", () => sockets.delete(socket));
  };
  let accepted = 0;
  const origin = createServer({ allowHalfOpen: true }, (socket) => {
    track(socket);
    upstream(socket, accepted++);
  });
  const originPort = await listening(origin);
  const connectUpstream = () =>
    new Promise<Duplex>((resolve, reject) => {
      const socket = netConnect({ port: originPort, host: "127.0.0.1", allowHalfOpen: true }, () => resolve(socket));
      upstreams.push(socket);
      socket.once("error", reject);
    });
  const front = createServer({ allowHalfOpen: true }, (client) => {
    track(client);
    relays.push(
      relayHttp(client, {
        decide: (head) => ({ kind: "forward", key: "origin", request: head, connect: connectUpstream, ...forward?.(head) }),
        onRequest: (outcome) => outcomes.push(outcome),
        ...relayOptions,
        pool,
      }),
    );
  });
  const port = await listening(front);
  return {
    outcomes,
    pool,
    upstreams,
    settled: () => Promise.all(relays),
    connect: () => connectClient(port),
    async [Symbol.asyncDispose]() {
      pool.close();
      for (const socket of [...sockets, ...upstreams]) socket.destroy();
      await Promise.all([new Promise((done) => front.close(done)), new Promise((done) => origin.close(done)), ...relays]);
    },
  };
}

/** A client that sends and receives bytes. */
export interface TestClient extends Disposable {
  readonly socket: Socket;
  /** Returns everything received so far. */
  text(): string;
  send(bytes: string | Buffer): void;
  /** Waits until the data since the last call contains `mark`. Returns the data up to and including the mark. */
  until(mark: string | RegExp): Promise<string>;
  /** Resolves when the connection has ended, with whether it ended properly and the data that was not returned yet. */
  closed(): Promise<{ clean: boolean; text: string }>;
}

export async function connectClient(port: number): Promise<TestClient> {
  const socket = netConnect({ port, host: "127.0.0.1", allowHalfOpen: true });
  let all = "";
  let offset = 0;
  const waiting: (() => void)[] = [];
  const wake = () => {
    for (const resolve of waiting.splice(0)) resolve();
  };
  let closed = false;
  let clean = false;
  socket.on("data", (chunk) => {
    all += chunk.toString("latin1");
    wake();
  });
  socket.once("end", () => {
    clean = true;
    socket.end();
    wake();
  });
  socket.on("error", () => {});
  socket.once("close", () => {
    closed = true;
    wake();
  });
  const changed = () => new Promise<void>((resolve) => waiting.push(resolve));
  await new Promise((resolve) => socket.once("connect", resolve));
  return {
    socket,
    text: () => all,
    send: (bytes) => void socket.write(bytes),
    async until(mark) {
      for (;;) {
        const rest = all.slice(offset);
        const end = typeof mark === "string" ? rest.indexOf(mark) + mark.length : endOf(mark.exec(rest));
        if (end > 0 && (typeof mark !== "string" || rest.includes(mark))) {
          offset += end;
          return rest.slice(0, end);
        }
        if (closed) throw new Error(`closed before ${mark}: ${JSON.stringify(rest)}`);
        await changed();
      }
    },
    async closed() {
      while (!closed) await changed();
      return { clean, text: all.slice(offset) };
    },
    [Symbol.dispose]: () => void socket.destroy(),
  };
}

function endOf(match: RegExpExecArray | null): number {
  return match === null ? 0 : match.index + match[0].length;
}

function listening(server: Server): Promise<number> {
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve((server.address() as { port: number }).port)));
}

/** Starts a rig and a first client for the calling test. */
export async function rigWith(options: RelayRigOptions): Promise<{ rig: RelayRig; client: TestClient }> {
  const rig = await startRelayRig(options);
  const client = await rig.connect();
  onTestFinished(async () => {
    client.socket.destroy();
    await rig[Symbol.asyncDispose]();
  });
  return { rig, client };
}

/** Returns an upstream that answers each chunk with the next of these texts, and records what it receives. */
export function scripted(answers: readonly string[]): { upstream: (socket: Socket) => void; received: () => string } {
  let received = "";
  let next = 0;
  const upstream = (socket: Socket) => {
    socket.on("data", (chunk) => {
      received += chunk.toString("latin1");
      const answer = answers[next++];
      if (answer !== undefined) socket.write(answer, "latin1");
    });
  };
  return { upstream, received: () => received };
}

export const ok = (body: string, headers = "") => `HTTP/1.1 200 OK\r\n${headers}Content-Length: ${body.length}\r\n\r\n${body}`;
