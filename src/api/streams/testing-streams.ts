import { connect as connectSocket, createServer, type Socket } from "node:net";
import { WebSocket } from "ws";
import { type Client, connect } from "../../client/connect.ts";
import { nodeSockets } from "../../client/node-sockets.ts";
import { socketFetch } from "../../client/socket-fetch.ts";
import { STREAM_PROTOCOL } from "../../contract/api/stream-paths.ts";
import type { Program, ProgramIo } from "../../runtimes/fake/program.ts";

/** Programs of the fake runtime for tests of streams. */
export const streamPrograms: Readonly<Record<string, Program>> = {
  /** Prints its terminal's size at the start and after each input. */
  terminal: async (io) => {
    const say = () => io.stdout(`${io.terminal?.cols}x${io.terminal?.rows}\n`);
    io.onSignal("SIGINT", () => void io.stdout("interrupted\n"));
    for (await say(); (await io.read()) !== null; await say());
    return 0;
  },
  copy: (io) => copy(io),
  /** Prints a number of bytes, each the lowest byte of its offset. */
  count: async (io) => {
    const total = Number(io.argv[1]);
    for (let at = 0; at < total; at += BLOCK) {
      await io.stdout(block.subarray(0, Math.min(BLOCK, total - at)));
      counted.bytes = at;
    }
    return 0;
  },
  /** Prints one line at the start, and one for each line that it reads. */
  lines: async (io) => {
    await io.stdout("line 0\n");
    for (let n = 1; (await io.read()) !== null; n += 1) await io.stdout(`line ${n}\n`);
    return 7;
  },
  /** Listens, prints the port, and echoes. `quit` breaks the connection. */
  "echo-server": async (io) => {
    const port = io.listen((connection) => {
      connection.on("data", (data: Buffer) => {
        if (data.toString() === "quit") connection.destroy();
        else if (!connection.write(data)) {
          connection.pause();
          connection.once("drain", () => connection.resume());
        }
      });
      connection.on("end", () => connection.end("bye"));
      connection.on("error", () => {});
    });
    await io.stdout(`${port}\n`);
    await io.sleep(60_000_000);
    return 0;
  },
};

/** The progress of `count`. */
export const counted = { bytes: 0 };

const BLOCK = 65_536;
export const block = Buffer.from(Array.from({ length: BLOCK }, (_, at) => at & 255));

async function copy(io: ProgramIo): Promise<number> {
  for (let data = await io.read(); data !== null; data = await io.read()) await io.stdout(data);
  return 0;
}

type AnyServer = { status: { url: string }; socketPath: string };

/** Connects a client over the socket in the state folder. */
export function socketClient({ socketPath }: AnyServer): Client {
  return connect({ url: "http://station", fetch: socketFetch(socketPath), openSocket: nodeSockets({ socketPath }) });
}

/** Opens a WebSocket without a client, and records its messages and how it is closed. */
export function rawSocket(server: AnyServer, path: string, options: { as?: string; origin?: string; protocols?: string[] } = {}) {
  const { as, origin, protocols = [STREAM_PROTOCOL] } = options;
  const ws = new WebSocket(`${server.status.url.replace("http", "ws")}${path}`, protocols, {
    headers: { ...(as !== undefined && { authorization: `Bearer ${as}` }), ...(origin !== undefined && { origin }) },
  });
  const messages: { type: string; [key: string]: unknown }[] = [];
  let wake = () => {};
  ws.on("message", (data: Buffer, isBinary) => {
    messages.push(isBinary ? { type: "bytes", data } : (JSON.parse(data.toString()) as { type: string }));
    wake();
  });
  const opened = new Promise<void>((resolve, reject) => ws.once("open", resolve).once("error", reject));
  opened.catch(() => {});
  const closed = new Promise<number>((resolve) => ws.once("close", resolve));
  return {
    ws,
    messages,
    opened,
    closed,
    async send(message: unknown) {
      await opened;
      ws.send(typeof message === "string" || message instanceof Uint8Array ? message : JSON.stringify(message));
    },
    /** Resolves with the first message of this type. */
    async message(type: string): Promise<{ type: string; [key: string]: unknown }> {
      for (;;) {
        const found = messages.find((each) => each.type === type);
        if (found !== undefined) return found;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
  };
}

/** Starts a proxy between client and station that can break connections. */
export async function cuttingProxy(server: Pick<AnyServer, "status">) {
  const pairs = new Set<{ near: Socket; far: Socket }>();
  let refuses = false;
  const proxy = createServer((near) => {
    if (refuses) return void near.destroy();
    const far = connectSocket(Number(new URL(server.status.url).port), "127.0.0.1");
    const pair = { near, far };
    pairs.add(pair);
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      one
        .on("error", () => {})
        .on("close", () => {
          pairs.delete(pair);
          other.destroy();
        });
      one.pipe(other);
    }
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const { port } = proxy.address() as { port: number };
  return {
    url: `http://127.0.0.1:${port}`,
    /** Blocks all existing connections without closing them. */
    silence() {
      for (const { near, far } of pairs) {
        near.unpipe(far).pause();
        far.unpipe(near).pause();
      }
    },
    /** Breaks all existing connections. */
    cut() {
      for (const { near, far } of pairs) {
        near.resetAndDestroy();
        far.resetAndDestroy();
      }
    },
    refuse(yes: boolean) {
      refuses = yes;
    },
    count: () => pairs.size,
    close() {
      for (const { near } of pairs) near.destroy();
      proxy.close();
    },
  };
}
