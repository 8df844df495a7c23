import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { connect as connectSocket, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll } from "vitest";
import { type Decoded, decodeFields, type Encodable, encodeFields, shapes } from "../../src/sandbox/guest/fields.ts";
import { createFrameParser, encodeFrame, type FrameName, frameName } from "../../src/sandbox/guest/frame.ts";
import { guestBinary } from "./files-client.ts";

/** Drives a real guest from outside with nothing between the test and the frames. */

export interface Frame {
  type: string;
  payload: Buffer;
}

/** One stream as the host sees it: frames in the order of their arrival. */
export interface Stream {
  readonly id: number;
  /** Rejects if the connection ends first. */
  next(): Promise<Frame>;
  /** The next frame that is not of these types. */
  nextOther(...types: string[]): Promise<Frame>;
}

export interface Link {
  readonly closed: Promise<void>;
  readonly heartbeats: Decoded<typeof shapes.HEARTBEAT>[];
  send(bytes: Uint8Array): void;
  frame(type: FrameName, stream: number, payload?: Uint8Array): void;
  open<Name extends RequestName>(type: Name, values: Encodable<(typeof shapes)[Name]>): Stream;
  openRaw(type: FrameName, payload?: Uint8Array): Stream;
  stream(id: number): Stream;
  /** Sends a request whose answer is one frame. Returns its type, or the code of an error. */
  ask<Name extends RequestName>(type: Name, values: Encodable<(typeof shapes)[Name]>): Promise<string>;
  ping(): Promise<void>;
  /** Stops reading what the guest sends, until `resume`. */
  pause(): void;
  resume(): void;
  close(): void;
}
type RequestName = Exclude<keyof typeof shapes, "WELCOME" | "HEARTBEAT" | "ERROR" | "STARTED" | "ENDED" | "WATCH_EVENT">;

export interface TestGuest extends AsyncDisposable {
  readonly child: ChildProcess;
  readonly folder: string;
  readonly socketPath: string;
  readonly exited: Promise<number | null>;
  link(options?: { token?: string; greet?: boolean }): Promise<Link>;
}

const codes =
  `none invalid not_found exists denied not_directory is_directory not_empty no_space busy unsupported io gone too_large refused not_executable unsafe superseded`.split(
    " ",
  );
export const errorCode = (frame: Frame): string => codes[decodeFields("ERROR", shapes.ERROR, frame.payload).code] ?? "?";
export const errorMessage = (frame: Frame): string => decodeFields("ERROR", shapes.ERROR, frame.payload).message;

/** Starts a guest and a link to it for all tests of a file or `describe`; calls `options` at that time. */
export function useGuest(options: () => StartOptions = () => ({})): { guest: TestGuest; link: Link } {
  let guest: TestGuest | undefined;
  let link: Link | undefined;
  beforeAll(async () => {
    guest = await startGuest(options());
    link = await guest.link();
  });
  afterAll(async () => guest?.[Symbol.asyncDispose]());
  return { guest: startedLater(() => guest), link: startedLater(() => link) };
}

/** Returns a proxy for the value that `get` returns when it is used. */
function startedLater<Value extends object>(get: () => Value | undefined): Value {
  return new Proxy({} as Value, {
    get(_, name) {
      const value = get();
      if (value === undefined) throw new Error("the guest does not start before the first test");
      const member: unknown = Reflect.get(value, name);
      return typeof member === "function" ? member.bind(value) : member;
    },
  });
}

/** `around` is the command that starts the guest, such as `unshare`; its options come before the guest's path. */
interface StartOptions {
  args?: string[];
  around?: string[];
  extraFds?: number[];
}

export async function startGuest(options: StartOptions = {}): Promise<TestGuest> {
  const folder = mkdtempSync(join(tmpdir(), "caisson-test-guest-"));
  const socketPath = join(folder, "guest.sock");
  const inner = [guestBinary, "init", "--listen-path", socketPath, ...(options.args ?? ["--not-init"])];
  const [program, ...args] = [...(options.around ?? []), ...inner];
  let stderr = "";
  const child = spawn(program as string, args, {
    stdio: ["ignore", "ignore", "pipe", ...(options.extraFds ?? [])],
    // The sanitizer checks for leaks when a process exits normally; supervisors are killed.
    env: { ...process.env, ASAN_OPTIONS: "detect_leaks=0" },
  });
  child.stderr?.on("data", (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  const exited = new Promise<number | null>((resolve) => {
    child.on("close", (code) => resolve(code));
  });
  let over = false;
  void exited.then(() => {
    over = true;
  });
  const dial = async (): Promise<Socket> => {
    for (;;) {
      const socket = connectSocket(socketPath);
      const up = await new Promise<boolean>((resolve) => {
        socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
      });
      if (up) return socket;
      if (over) throw new Error(`the guest ended: ${stderr}`);
      await delay(5);
    }
  };
  const guest: TestGuest = {
    child,
    folder,
    socketPath,
    exited,
    async link({ token, greet = true } = {}) {
      const link = linkOver(await dial());
      if (!greet) return link;
      link.send(encodeFields("HELLO", 0, shapes.HELLO, { version: 1, ...(token === undefined ? {} : { token: Buffer.from(token) }) }));
      const welcome = await link.stream(0).next();
      if (welcome.type !== "WELCOME") throw new Error(`${welcome.type} in place of WELCOME`);
      return link;
    },
    async [Symbol.asyncDispose]() {
      if (!over && child.exitCode === null) {
        // With a wrapper, the guest is process 1 of a namespace and ends with it.
        child.kill(options.around === undefined ? "SIGTERM" : "SIGKILL");
      }
      await exited;
      rmSync(folder, { recursive: true, force: true });
      if (stderr.includes("ERROR: AddressSanitizer") || stderr.includes("runtime error")) throw new Error(stderr);
    },
  };
  return guest;
}

function linkOver(socket: Socket): Link {
  const streams = new Map<number, { frames: Frame[]; wake: (() => void) | null }>();
  const heartbeats: Decoded<typeof shapes.HEARTBEAT>[] = [];
  let nextId = 1;
  let ended = false;
  const of = (id: number) => {
    const known = streams.get(id) ?? { frames: [], wake: null };
    streams.set(id, known);
    return known;
  };
  const parser = createFrameParser({
    receiver: "host",
    onFrame: (code, id, payload) => {
      const type = frameName(code);
      if (type === "HEARTBEAT") {
        heartbeats.push(decodeFields(type, shapes.HEARTBEAT, payload));
        return;
      }
      const stream = of(id);
      stream.frames.push({ type, payload: Buffer.from(payload) });
      stream.wake?.();
    },
  });
  socket.on("data", (chunk: Buffer) => parser.push(chunk));
  socket.on("error", () => {});
  const closed = new Promise<void>((resolve) => {
    socket.on("close", () => {
      ended = true;
      for (const stream of streams.values()) stream.wake?.();
      resolve();
    });
  });
  const streamOf = (id: number): Stream => {
    const state = of(id);
    const next = async (): Promise<Frame> => {
      for (;;) {
        const frame = state.frames.shift();
        if (frame !== undefined) return frame;
        if (ended) throw new Error("the connection ended");
        await new Promise<void>((resolve) => {
          state.wake = resolve;
        });
        state.wake = null;
      }
    };
    return {
      id,
      next,
      async nextOther(...types) {
        for (;;) {
          const frame = await next();
          if (!types.includes(frame.type)) return frame;
        }
      },
    };
  };
  const openWith = (frame: (id: number) => Buffer): Stream => {
    const id = nextId;
    nextId += 2;
    const stream = streamOf(id);
    socket.write(frame(id));
    return stream;
  };
  const link: Link = {
    closed,
    heartbeats,
    send: (bytes) => void socket.write(bytes),
    frame: (type, id, payload) => void socket.write(encodeFrame(type, id, payload)),
    open: (type, values) => openWith((id) => encodeFields(type, id, shapes[type], values as never)),
    openRaw: (type, payload) => openWith((id) => encodeFrame(type, id, payload)),
    stream: streamOf,
    async ask(type, values) {
      const frame = await link.open(type, values).next();
      return frame.type === "ERROR" ? errorCode(frame) : frame.type;
    },
    async ping() {
      const frame = await link.openRaw("PING", Buffer.from("ping")).next();
      if (frame.type !== "PONG" || frame.payload.toString() !== "ping") throw new Error(`${frame.type} in place of PONG`);
    },
    pause: () => void socket.pause(),
    resume: () => void socket.resume(),
    close: () => void socket.destroy(),
  };
  return link;
}
