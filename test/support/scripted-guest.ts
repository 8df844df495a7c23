import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach } from "vitest";
import { connectGuest, type GuestConnection } from "../../src/sandbox/guest/connection.ts";
import { type Decoded, decodeFields, type Encodable, encodeFields, type Shape, shapes } from "../../src/sandbox/guest/fields.ts";
import { createFrameParser, encodeFrame, type FrameName, frameName } from "../../src/sandbox/guest/frame.ts";

/** A frame from the host. */
export interface SeenFrame {
  type: FrameName;
  stream: number;
  payload: Buffer;
}

/** The guest's side of a connection, which a test plays. */
export interface ScriptedPeer {
  readonly socket: Socket;
  /** All frames from the host after its HELLO. */
  readonly seen: SeenFrame[];
  send(type: FrameName, stream: number, payload?: Uint8Array): void;
  sendFields<S extends Shape>(type: FrameName, stream: number, shape: S, values: Encodable<S>): void;
  output(stream: number, descriptor: 1 | 2, offset: number, data: Uint8Array): void;
  started(stream: number, ref: string, values?: Partial<Encodable<typeof shapes.STARTED>>): void;
  ended(stream: number, values?: Partial<Encodable<typeof shapes.ENDED>>): void;
  /** Resolves with the next frame of this type that no earlier call returned. */
  next(type: FrameName): Promise<SeenFrame>;
}

export interface ScriptedGuest extends AsyncDisposable {
  readonly socketPath: string;
  /** Opens a connection of the real client, and returns it with its other end. */
  connect(): Promise<{ connection: GuestConnection; peer: ScriptedPeer }>;
}

export const scriptedWelcome: Encodable<typeof shapes.WELCOME> = {
  version: 1,
  guestVersion: "scripted",
  bootId: Buffer.alloc(16, 7),
  uid: 1000,
  gid: 1000,
  rootAllowed: false,
};

/** Starts a server that speaks the protocol as a test wants, including lies. `onFrame` can reply automatically. */
export async function startScriptedGuest(
  options: {
    onFrame?: (peer: ScriptedPeer, frame: SeenFrame) => void;
    onHello?: (peer: ScriptedPeer, hello: Decoded<typeof shapes.HELLO>) => void;
  } = {},
): Promise<ScriptedGuest> {
  const folder = await mkdtemp(join(tmpdir(), "caisson-test-guest-"));
  const socketPath = join(folder, "guest.sock");
  const sockets = new Set<Socket>();
  let arrived: ((peer: ScriptedPeer) => void) | null = null;
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => {});
    const peer = peerOver(socket, options);
    arrived?.(peer);
  });
  await new Promise<void>((resolve) => server.listen(socketPath, resolve));
  return {
    socketPath,
    async connect() {
      const peer = new Promise<ScriptedPeer>((resolve) => {
        arrived = resolve;
      });
      const connection = await connectGuest({ socketPath, timeoutMs: 60_000 });
      return { connection, peer: await peer };
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function peerOver(socket: Socket, options: NonNullable<Parameters<typeof startScriptedGuest>[0]>): ScriptedPeer {
  const seen: SeenFrame[] = [];
  const untaken: SeenFrame[] = [];
  const waiting: { type: FrameName; resolve: (frame: SeenFrame) => void }[] = [];
  const u64 = (value: number) => {
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64LE(BigInt(value));
    return bytes;
  };
  const peer: ScriptedPeer = {
    socket,
    seen,
    send: (type, stream, payload) => void socket.write(encodeFrame(type, stream, payload)),
    sendFields: (type, stream, shape, values) => void socket.write(encodeFields(type, stream, shape, values)),
    output: (stream, descriptor, offset, data) =>
      peer.send("OUTPUT", stream, Buffer.concat([Buffer.from([descriptor]), u64(offset), data])),
    started: (stream, ref, values = {}) => peer.sendFields("STARTED", stream, shapes.STARTED, { ref, pid: 7, ...values }),
    ended: (stream, values = {}) =>
      peer.sendFields("ENDED", stream, shapes.ENDED, { kind: 1, exitCode: 0, stdoutBytes: 0, stderrBytes: 0, ...values }),
    next(type) {
      const at = untaken.findIndex((frame) => frame.type === type);
      const found = at < 0 ? undefined : untaken.splice(at, 1)[0];
      if (found !== undefined) return Promise.resolve(found);
      return new Promise((resolve) => waiting.push({ type, resolve }));
    },
  };
  const onFrame = (code: number, stream: number, payload: Buffer) => {
    const frame: SeenFrame = { type: frameName(code) as FrameName, stream, payload: Buffer.from(payload) };
    if (frame.type === "HELLO") {
      const hello = decodeFields("HELLO", shapes.HELLO, payload);
      if (options.onHello === undefined) peer.sendFields("WELCOME", 0, shapes.WELCOME, scriptedWelcome);
      else options.onHello(peer, hello);
      return;
    }
    seen.push(frame);
    const at = waiting.findIndex(({ type }) => type === frame.type);
    if (at < 0) untaken.push(frame);
    else waiting.splice(at, 1)[0]?.resolve(frame);
    options.onFrame?.(peer, frame);
  };
  const parser = createFrameParser({ receiver: "guest", onFrame });
  socket.on("data", (chunk) => parser.push(chunk));
  return peer;
}

/** Starts a guest and a connection to it for each test of the calling file. */
export function useScriptedGuest(
  onStarted: (started: { guest: ScriptedGuest; connection: GuestConnection; peer: ScriptedPeer }) => void,
): void {
  let guest: ScriptedGuest;
  let connection: GuestConnection;
  beforeEach(async () => {
    guest = await startScriptedGuest();
    const connected = await guest.connect();
    connection = connected.connection;
    onStarted({ guest, ...connected });
  });
  afterEach(async () => {
    connection.close();
    await guest[Symbol.asyncDispose]();
  });
}

/** Returns the ref of a SPAWN or ATTACH from the host. */
export function refOf(frame: SeenFrame): string {
  return decodeFields(frame.type, shapes.ATTACH, frame.payload).ref;
}
