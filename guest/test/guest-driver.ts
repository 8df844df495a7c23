import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { connect as connectSocket, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll } from "vitest";
import { type Decoded, decodeFields, type Encodable, encodeFields, shapes } from "../../src/sandbox/guest/fields.ts";
import { createFrameParser, encodeFrame, type FrameName, frameName } from "../../src/sandbox/guest/frame.ts";
import { decodeOutputHead, encodeAck } from "../../src/sandbox/guest/raw.ts";
import { guestBinary, isSanitised } from "./files-client.ts";

/** Drives a real guest from outside with nothing between the test and the frames. */

export interface Frame {
  type: string;
  payload: Buffer;
}

/** One stream as the host sees it: frames in the order they came. */
export interface Stream {
  readonly id: number;
  /** Rejects when the connection ends first. */
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
  /** The answer when it is one frame: its type, and the error's code when it is one. */
  ask<Name extends RequestName>(type: Name, values: Encodable<(typeof shapes)[Name]>): Promise<string>;
  ping(): Promise<void>;
  /** Stops and starts reading what the guest sends. */
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

/** A guest and a link to it for all tests of a file, or of a `describe`; `options` is asked when it is started. */
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

/** What `get` gives by the time that it is used. */
function startedLater<Value extends object>(get: () => Value | undefined): Value {
  return new Proxy({} as Value, {
    get(_, name) {
      const value = get();
      if (value === undefined) throw new Error("the guest is started before the first test, not earlier");
      const member: unknown = Reflect.get(value, name);
      return typeof member === "function" ? member.bind(value) : member;
    },
  });
}

/** `around` is what the guest is started through, such as `unshare`; its options come before the guest's path. */
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
    // Leaks are looked for where a process ends in order; supervisors are killed.
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
        // Through a wrapper the guest is process 1 of a namespace and ends with it.
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

export interface Finished {
  pid: number;
  ended: Decoded<typeof shapes.ENDED>;
  stdout: string;
  stderr: string;
}
export type Command = Partial<Omit<Encodable<typeof shapes.SPAWN>, "argv">> & { argv: readonly string[] };

let refs = 0;
export const newRef = (): string => `test-${process.pid}-${refs++}`;

export function spawnIn(link: Link, command: Command): { ref: string; stream: Stream } {
  const ref = command.ref ?? newRef();
  // A sanitised `sudo` would look for leaks for seconds.
  const env = ["PATH=/usr/bin:/bin:/usr/sbin:/sbin", ...(isSanitised ? ["ASAN_OPTIONS=detect_leaks=0"] : [])];
  return { ref, stream: link.open("SPAWN", { env, cwd: "/", ...command, ref }) };
}

/** The STARTED of a command; throws when it is something else. */
export async function started(stream: Stream): Promise<Decoded<typeof shapes.STARTED>> {
  const frame = await stream.next();
  if (frame.type === "ERROR") throw new Error(`${errorCode(frame)}: ${errorMessage(frame)}`);
  if (frame.type !== "STARTED") throw new Error(`${frame.type} in place of STARTED`);
  return decodeFields("STARTED", shapes.STARTED, frame.payload);
}

/** Reads a started command to its end, acknowledging what it writes, and checks that offsets have neither gaps nor overlaps. */
export async function finish(link: Link, stream: Stream, from: [number, number] = [0, 0]): Promise<Omit<Finished, "pid">> {
  const parts: [Buffer[], Buffer[]] = [[], []];
  const at: [number, number] = [...from];
  for (;;) {
    const frame = await stream.nextOther("STDIN_ACK");
    if (frame.type === "ENDED") {
      const ended = decodeFields("ENDED", shapes.ENDED, frame.payload);
      if (ended.stdoutBytes !== at[0] || ended.stderrBytes !== at[1]) throw new Error(`ENDED at ${at}, but says otherwise`);
      return { ended, stdout: Buffer.concat(parts[0]).toString(), stderr: Buffer.concat(parts[1]).toString() };
    }
    if (frame.type !== "OUTPUT") throw new Error(frame.type === "ERROR" ? errorCode(frame) : frame.type);
    const { descriptor, offset } = decodeOutputHead(frame.payload);
    const which = (descriptor - 1) as 0 | 1;
    if (offset !== at[which]) throw new Error(`output at ${offset}, expected ${at[which]}`);
    const data = frame.payload.subarray(9);
    parts[which].push(data);
    at[which] += data.length;
    link.send(encodeAck(stream.id, descriptor, at[which]));
  }
}

export async function run(link: Link, command: Command): Promise<Finished> {
  const { stream } = spawnIn(link, command);
  const { pid } = await started(stream);
  return { pid, ...(await finish(link, stream)) };
}

export const shell = (link: Link, script: string, options: Partial<Command> = {}): Promise<Finished> =>
  run(link, { ...options, argv: ["sh", "-c", script] });

/** Waits for something that no frame tells of: a process of the machine that comes or goes. */
export async function until(what: string, holds: () => boolean | Promise<boolean>, timeoutMs = 60_000): Promise<void> {
  const end = Date.now() + timeoutMs;
  while (!(await holds())) {
    if (Date.now() > end) throw new Error(`waited ${timeoutMs} ms for: ${what}`);
    await delay(5);
  }
}

/** So many seconds for `sleep`, and a bit that no other test run on this machine uses: one's own can be told from theirs. */
export const ownSeconds = (seconds: number): string => `${seconds}.${process.pid}`;

/** Processes of the machine that sleep for so long, or are about to (`setsid sleep 65`). */
export const pidsSleeping = (seconds: string): number[] => pidsWith(`sleep\0${seconds}\0`);

/** Processes of the machine whose command line has this text; zombies have none. */
export function pidsWith(text: string): number[] {
  return [...commandLines()].flatMap(([pid, line]) => (line.includes(text) ? [pid] : []));
}

/** Processes of the machine that run exactly this. */
export function pidsRunning(...argv: string[]): number[] {
  const wanted = argv.map((word) => `${word}\0`).join("");
  return [...commandLines()].flatMap(([pid, line]) => (line === wanted ? [pid] : []));
}

function commandLines(): Map<number, string> {
  const lines = new Map<number, string>();
  for (const name of readdirSync("/proc").filter((each) => /^\d+$/.test(each))) {
    try {
      lines.set(Number(name), readFileSync(`/proc/${name}/cmdline`, "latin1"));
    } catch {
      // It has ended since.
    }
  }
  return lines;
}

export function statusOf(pid: number, field: string): number {
  const line = readFileSync(`/proc/${pid}/status`, "utf8")
    .split("\n")
    .find((each) => each.startsWith(`${field}:`));
  return Number.parseInt((line ?? "").split(/\s+/)[1] ?? "NaN", 10);
}

/** The guest's own processes, by the name they gave themselves. */
export function childrenNamed(pid: number, name: string): number[] {
  const found: number[] = [];
  for (const entry of readdirSync("/proc")) {
    if (!/^\d+$/.test(entry)) continue;
    try {
      const stat = readFileSync(`/proc/${entry}/stat`, "latin1");
      const comm = stat.slice(stat.indexOf("(") + 1, stat.lastIndexOf(")"));
      const parent = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
      if (comm === name && parent === pid) found.push(Number(entry));
    } catch {}
  }
  return found;
}
