import { createConnection, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { CaissonError } from "../../contract/error/error.ts";
import type { ProcessRef } from "../../contract/ids.ts";
import { shortSocketPath } from "../../lib/short-socket-path.ts";
import type { ProcessInfo } from "../sandbox.ts";
import { answers, type Decoded, decodeFields, type Encodable, encodeFields, entries, shapes } from "./fields.ts";
import { type GuestFiles, guestFiles } from "./files.ts";
import { frameCode, frameName, protocolError } from "./frame.ts";
import { errorFromGuest, printable } from "./guest-error.ts";
import { guestMismatch } from "./guest-mismatch.ts";
import { Link } from "./link.ts";
import { ping } from "./ping.ts";
import { connectPort } from "./port.ts";
import { type ProcessStarts, processStarts } from "./process-starts.ts";
import { askForEntries, tell } from "./request.ts";
import { createServing, type Serving } from "./serve.ts";
import { SlabReader } from "./slab-reader.ts";
import type { GuestCondition } from "./waits.ts";

const PROTOCOL_VERSION = 1;
const ENTRIES_MAX = 8_192;

export interface Welcome {
  guestVersion: string;
  /** Changes each time the guest starts: the same id means the same guest process. */
  bootId: string;
  uid: number;
  gid: number;
  rootAllowed: boolean;
  /** Whether the guest can fence off earlier holders of the same work. */
  fences: boolean;
  keepsLast: boolean;
}

/**
 * One connection to one guest. Every method throws `lost` if the connection has closed, the guest's own errors, and
 * `timeout` if the guest does not answer (see `Waits`).
 */
export interface GuestConnection extends ProcessStarts, Serving {
  readonly welcome: Welcome;
  readonly files: GuestFiles;
  /** Resolves when the connection closes, with the reason, or with null after `close`. Never rejects. */
  readonly closed: Promise<CaissonError | null>;
  readonly isClosed: boolean;
  /** The time of the guest's last frame, in milliseconds since the epoch. */
  lastHeardMs(): number;
  /** Sets how the host checks on the guest by other means when it does not answer. */
  onSilence(condition: () => Promise<GuestCondition>): void;
  /** Closes the connection only; the guest and its processes continue. */
  close(): void;
  /** Throws `timeout`. */
  ping(options: { timeoutMs: number }): Promise<{ roundTripMs: number }>;
  /** Ends all work and the guest itself. Resolves when the guest has ended its work. */
  shutdown(options: { graceMs: number }): Promise<void>;
  /** See `OwnedSandbox.fence`. */
  fence(values: Encodable<typeof shapes.FENCE>): Promise<void>;
  forget(ref: ProcessRef): Promise<void>;
  processes(): Promise<ProcessInfo[]>;
  connect(port: number): Promise<Duplex>;
  listeners(): Promise<{ port: number; address: string }[]>;
}

export interface ConnectOptions {
  /** May have any length: if it is too long for a socket address, the client connects through its folder. */
  socketPath: string;
  /** The token that the guest requires. Absent for a guest that was started without one. */
  token?: Uint8Array | undefined;
  /** The time limit for connecting and the guest's welcome together. */
  timeoutMs: number;
  /**
   * Waits for the socket to appear, for a guest that creates it itself. Otherwise a missing socket is `lost`
   * immediately.
   */
  waitForSocket?: boolean;
}

/**
 * Connects to a guest. Throws `lost` if nothing listens there, `timeout`, `denied` for a wrong token, `unsupported` for
 * another protocol version, `protocol`.
 */
export async function connectGuest(options: ConnectOptions): Promise<GuestConnection> {
  const deadline = performance.now() + options.timeoutMs;
  const { socket, reader } = await connectSocket(options, deadline);
  return greet({ socket, reader, token: options.token, name: options.socketPath, timeoutMs: Math.max(1, deadline - performance.now()) });
}

async function connectSocket(options: ConnectOptions, deadline: number): Promise<{ socket: Socket; reader: SlabReader }> {
  for (let pauseMs = 1; ; pauseMs = Math.min(pauseMs * 2, 20)) {
    try {
      return await connectOnce(options.socketPath);
    } catch (error) {
      const code = error instanceof Error && "code" in error ? String(error.code) : "unknown";
      const mayCome = code === "ENOENT" || code === "ECONNREFUSED" || code === "EAGAIN";
      if (!mayCome || !(options.waitForSocket || code === "EAGAIN")) {
        throw new CaissonError("lost", `no guest listens at ${options.socketPath} (${code})`, {
          cause: error,
          hint: "The sandbox has died; remove its remains with `caisson sandbox rm`.",
        });
      }
      if (performance.now() + pauseMs > deadline) throw timedOut(options.socketPath, options.timeoutMs, error);
      await delay(pauseMs);
    }
  }
}

function connectOnce(socketPath: string): Promise<{ socket: Socket; reader: SlabReader }> {
  return new Promise((resolve, reject) => {
    const { path, close } = shortSocketPath(socketPath);
    const reader = new SlabReader();
    const socket = createConnection({ path, onread: reader.onread });
    const settle = () => {
      close();
      socket.off("error", onError);
    };
    const onError = (error: Error) => {
      settle();
      reject(error);
    };
    socket.once("error", onError);
    socket.once("connect", () => {
      settle();
      resolve({ socket, reader });
    });
  });
}

export interface GreetOptions {
  socket: Duplex;
  /** The reader of a socket that is read into slabs. */
  reader?: SlabReader | undefined;
  token?: Uint8Array | undefined;
  /** The guest's location, for messages. */
  name: string;
  timeoutMs: number;
}

/** Sends `HELLO` to a guest over a stream and waits for `WELCOME`. Throws what `connectGuest` throws. */
export function greet(options: GreetOptions): Promise<GuestConnection> {
  const { socket, reader, token, name, timeoutMs } = options;
  return new Promise((resolve, reject) => {
    const link = new Link({ socket, reader });
    const timer = setTimeout(() => link.fail(timedOut(name, timeoutMs)), timeoutMs);
    link.greet({
      onFrame(type, payload) {
        if (type === frameCode.ERROR) throw greetingError(name, payload);
        if (type !== frameCode.WELCOME) throw protocolError(`${frameName(type)} before WELCOME`);
        const welcome = welcomeOf(payload);
        clearTimeout(timer);
        resolve(connectionOver(link, welcome));
        return true;
      },
      onLost(error) {
        clearTimeout(timer);
        reject(error);
      },
    });
    link.send(encodeFields("HELLO", 0, shapes.HELLO, { version: PROTOCOL_VERSION, token }));
  });
}

function welcomeOf(payload: Buffer): Welcome {
  const { version, guestVersion, bootId, uid, gid, rootAllowed, fences, keepsLast } = decodeFields("WELCOME", shapes.WELCOME, payload);
  if (version !== PROTOCOL_VERSION) throw guestMismatch(`the guest speaks protocol version ${version}, not ${PROTOCOL_VERSION}`);
  if (bootId.length !== 16) throw protocolError(`a boot id of ${bootId.length} bytes`);
  return { guestVersion: printable(guestVersion), bootId: Buffer.from(bootId).toString("hex"), uid, gid, rootAllowed, fences, keepsLast };
}

/** During the greeting, `unsupported` can only mean the protocol version. */
function greetingError(name: string, payload: Buffer): CaissonError {
  const error = errorFromGuest(`greeting the guest at ${name}`, payload);
  return error.code === "unsupported" ? guestMismatch(error.message, { cause: error }) : error;
}

function timedOut(name: string, timeoutMs: number, cause?: unknown): CaissonError {
  return new CaissonError("timeout", `the guest at ${name} did not answer within ${Math.round(timeoutMs)} ms`, { cause });
}

function connectionOver(link: Link, welcome: Welcome): GuestConnection {
  return {
    welcome,
    files: guestFiles(link),
    closed: link.closed,
    get isClosed() {
      return link.isClosed;
    },
    lastHeardMs: () => link.lastHeardMs(),
    onSilence: (condition) => {
      link.waits.condition = condition;
    },
    close: () => link.close(),
    ping: ({ timeoutMs }) => ping(link, timeoutMs),
    shutdown: ({ graceMs }) => tell(link, { type: "SHUTDOWN", values: { graceMs }, what: "shutting down the guest" }),
    async fence(values) {
      if (!welcome.fences) throw guestMismatch(`the sandbox's guest (${welcome.guestVersion}) cannot fence off a run's earlier driver`);
      await tell(link, { type: "FENCE", values, what: `taking over ${values.name}` });
    },
    ...processStarts(link, welcome),
    forget: (ref) => tell(link, { type: "FORGET", values: { ref }, what: `forgetting ${ref}` }),
    processes: async () => {
      const request = { type: "LIST", values: {}, entry: entries.process, answer: answers.nothing, entriesMax: ENTRIES_MAX } as const;
      return (await askForEntries(link, { ...request, what: "listing processes", read: processInfo })).items;
    },
    connect: (port) => connectPort(link, port),
    ...createServing(link),
    listeners: async () => {
      const request = { type: "LISTENERS", values: {}, entry: entries.listener, answer: answers.nothing, entriesMax: ENTRIES_MAX } as const;
      return (await askForEntries(link, { ...request, what: "listing ports", read: listenerInfo })).items;
    },
  };
}

function processInfo(fields: Decoded<typeof entries.process>): ProcessInfo {
  const { ref, pid, parentPid, state, command, uid, startMs, residentBytes, cpuMs, keepsLast } = fields;
  if (state !== 1 && state !== 2) throw protocolError(`a process in state ${state}`);
  return {
    ref: ref === "" ? null : ref,
    pid,
    parentPid,
    state: state === 1 ? "running" : "ended",
    command,
    uid,
    startedMs: startMs,
    memoryBytes: residentBytes,
    cpuMs,
    keepsLastOutput: keepsLast,
  };
}

function listenerInfo({ port, address }: Decoded<typeof entries.listener>): { port: number; address: string } {
  if (port < 1 || port > 65_535) throw protocolError(`a listener on port ${port}`);
  return { port, address: printable(address) };
}
