import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  answers,
  type Decoded,
  decodeFields,
  type Encodable,
  encodeFields,
  entries,
  type Shape,
  shapes,
} from "../../src/sandbox/guest/fields.ts";
import { createFrameParser, encodeFrame, type FrameName, frameName } from "../../src/sandbox/guest/frame.ts";
import { encodeCredit, encodeDataHead } from "../../src/sandbox/guest/raw.ts";

/** The binary under test; this variable makes the same tests run with the sanitized build. */
export const guestBinary = process.env.GUEST_BINARY ?? join(import.meta.dirname, "../build/caisson-guest");
export const isSanitised = guestBinary.includes("asan");

const codes = [
  "",
  "invalid",
  "not_found",
  "exists",
  "denied",
  "not_directory",
  "is_directory",
  "not_empty",
  "no_space",
  "busy",
  "unsupported",
  "io",
  "gone",
  "too_large",
  "refused",
  "not_executable",
  "unsafe",
] as const;

export class Refused extends Error {
  readonly code: string;
  readonly errno: number;
  constructor(fields: Decoded<typeof shapes.ERROR>) {
    super(fields.message);
    this.code = codes[fields.code] ?? String(fields.code);
    this.errno = fields.errno;
  }
}

export interface Frame {
  type: string;
  payload: Buffer;
}

type RequestName = "STAT" | "LISTDIR" | "MKDIR" | "MOVE" | "REMOVE" | "READ" | "WRITE" | "WATCH" | "TAR_IN" | "TAR_OUT";

/** The stream of one request. */
export interface Exchange {
  readonly stream: number;
  /** Rejects with `Refused` after an ERROR, and if the worker ends. */
  next(): Promise<Frame>;
  data(bytes: Uint8Array): void;
  end(): void;
  cancel(): void;
  credit(bytes: number): void;
  /** The number of frames that have arrived and were not read yet. */
  readonly waiting: number;
}

export interface TestWorker extends AsyncDisposable {
  readonly process: ChildProcess;
  readonly ended: Promise<{ code: number | null; signal: string | null; stderr: string }>;
  open<Name extends RequestName>(name: Name, values: Encodable<(typeof shapes)[Name]>): Exchange;
  openRaw(name: RequestName, payload: Uint8Array): Exchange;
  raw(bytes: Uint8Array): void;
  stat(path: string, options?: { follow?: boolean }): Promise<FileFields>;
  list(path: string, options?: { depth?: number; entriesMax?: number }): Promise<{ entries: FileFields[]; truncated: boolean }>;
  mkdir(path: string, options?: { parents?: boolean; mode?: number }): Promise<void>;
  move(from: string, to: string, options?: { replace?: boolean }): Promise<void>;
  remove(path: string, options?: { recursive?: boolean }): Promise<void>;
  read(path: string, options?: { offset?: number; length?: number }): Promise<Buffer>;
  write(path: string, bytes: Uint8Array, options?: { mode?: number; parents?: boolean; how?: number }): Promise<number>;
  tarIn(folder: string, archive: Uint8Array, options?: TarInOptions): Promise<{ entries: number; bytes: number }>;
  tarOut(path: string, options?: { exclude?: string[]; bytesMax?: number }): Promise<Buffer>;
}
export interface TarInOptions {
  bytesMax?: number;
  entriesMax?: number;
  stripComponents?: number;
  keepOwner?: boolean;
  chunkBytes?: number;
}
export type FileFields = Decoded<typeof answers.file>;

const WINDOW = 1_048_576;
const CHUNK = 262_144;

export interface StartOptions {
  uid?: number;
  /** System calls that must fail as on an older kernel, in strace's syntax: `openat2:error=ENOSYS`. */
  inject?: string;
  /** Lets the sanitizer check for leaks at the end, which takes seconds. */
  findLeaks?: boolean;
}

export function startWorker(options: StartOptions = {}): TestWorker {
  const traced =
    options.inject === undefined ? [] : ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "signal=none", "-e", `inject=${options.inject}`];
  const [program, ...args] = [...traced, guestBinary, "worker"];
  const child = spawn(program as string, args, {
    stdio: ["pipe", "pipe", "pipe"],
    cwd: "/",
    env: { ...process.env, ASAN_OPTIONS: `detect_leaks=${options.findLeaks ? 1 : 0}` },
    ...(options.uid === undefined ? {} : { uid: options.uid, gid: options.uid }),
  });
  const exchanges = new Map<number, { push(frame: Frame): void; fail(error: Error): void; credited(bytes: number): void }>();
  let stderr = "";
  let nextStream = 1;
  let over: Error | null = null;
  child.stderr.on("data", (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  child.stdin.on("error", () => {});
  const parser = createFrameParser({
    receiver: "host",
    onFrame: (code, stream, payload) => {
      const type = frameName(code);
      const exchange = exchanges.get(stream);
      if (exchange === undefined) throw new Error(`${type} for stream ${stream}, which is not open`);
      if (type === "CREDIT") exchange.credited(payload.readUInt32LE(0));
      else exchange.push({ type, payload: Buffer.from(payload) });
    },
  });
  child.stdout.on("data", (chunk: Buffer) => parser.push(chunk));
  const ended = new Promise<{ code: number | null; signal: string | null; stderr: string }>((resolve) => {
    child.on("close", (code, signal) => {
      over = new Error(`the worker ended (${code ?? signal}): ${stderr}`);
      for (const exchange of exchanges.values()) exchange.fail(over);
      resolve({ code, signal, stderr });
    });
  });

  const begin = (frame: (stream: number) => Buffer): Exchange & { room(bytes: number): Promise<void> } => {
    const stream = nextStream;
    nextStream += 2;
    const frames: Frame[] = [];
    let waiter: { resolve(frame: Frame): void; reject(error: Error): void } | null = null;
    let failure: Error | null = over;
    let window = WINDOW;
    let wantsRoom: (() => void) | null = null;
    let refused = false;
    const deliver = () => {
      if (waiter === null) return;
      const frame = frames.shift();
      const { resolve, reject } = waiter;
      if (frame === undefined) {
        if (failure !== null) reject(failure);
        else return;
      } else if (frame.type === "ERROR") reject(new Refused(decodeFields("ERROR", shapes.ERROR, frame.payload)));
      else resolve(frame);
      waiter = null;
    };
    exchanges.set(stream, {
      push(got) {
        frames.push(got);
        if (got.type === "ERROR") {
          refused = true;
          wantsRoom?.();
        }
        deliver();
      },
      fail(error) {
        failure = error;
        wantsRoom?.();
        deliver();
      },
      credited(bytes) {
        window += bytes;
        wantsRoom?.();
      },
    });
    child.stdin.write(frame(stream));
    return {
      stream,
      get waiting() {
        return frames.length;
      },
      next: () =>
        new Promise((resolve, reject) => {
          waiter = { resolve, reject };
          deliver();
        }),
      async room(bytes) {
        while (window < bytes && failure === null && !refused) {
          await new Promise<void>((resolve) => {
            wantsRoom = resolve;
          });
          wantsRoom = null;
        }
        window -= bytes;
      },
      data(bytes) {
        child.stdin.write(encodeDataHead(stream, bytes.length));
        child.stdin.write(bytes);
      },
      end: () => void child.stdin.write(encodeFrame("END", stream)),
      cancel: () => void child.stdin.write(encodeFrame("CANCEL", stream)),
      credit: (bytes) => void child.stdin.write(encodeCredit(stream, bytes)),
    };
  };
  const open = <Name extends RequestName>(name: Name, values: Encodable<(typeof shapes)[Name]>) =>
    begin((stream) => encodeFields(name, stream, shapes[name] as Shape, values as Encodable<Shape>));
  const done = async (exchange: Exchange): Promise<void> => void (await exchange.next());
  const upload = async (exchange: Exchange & { room(bytes: number): Promise<void> }, bytes: Uint8Array, chunkBytes = CHUNK) => {
    const answer = exchange.next();
    answer.catch(() => {});
    for (let at = 0; at < bytes.length; at += chunkBytes) {
      const chunk = bytes.subarray(at, at + chunkBytes);
      await exchange.room(chunk.length);
      exchange.data(chunk);
    }
    exchange.end();
    return answer;
  };
  const download = async (exchange: Exchange): Promise<Buffer> => {
    await exchange.next();
    const chunks: Buffer[] = [];
    for (;;) {
      const frame = await exchange.next();
      if (frame.type === "END") return Buffer.concat(chunks);
      chunks.push(frame.payload);
      exchange.credit(frame.payload.length);
    }
  };

  return {
    process: child,
    ended,
    open,
    openRaw: (name, payload) => begin((stream) => encodeFrame(name as FrameName, stream, payload)),
    raw: (bytes) => void child.stdin.write(bytes),
    async stat(path, { follow = false } = {}) {
      return decodeFields("OK", answers.file, (await open("STAT", { path, follow }).next()).payload);
    },
    async list(path, { depth = 1, entriesMax = 0 } = {}) {
      const exchange = open("LISTDIR", { path, depth, entriesMax });
      const found: FileFields[] = [];
      for (;;) {
        const frame = await exchange.next();
        if (frame.type === "OK") return { entries: found, truncated: decodeFields("OK", answers.listed, frame.payload).truncated };
        found.push(decodeFields("ENTRY", entries.file, frame.payload));
      }
    },
    mkdir: (path, fields = {}) => done(open("MKDIR", { path, ...fields })),
    move: (from, to, { replace = false } = {}) => done(open("MOVE", { from, to, replace })),
    remove: (path, { recursive = false } = {}) => done(open("REMOVE", { path, recursive })),
    read: (path, fields = {}) => download(open("READ", { path, ...fields })),
    async write(path, bytes, fields = {}) {
      return decodeFields("OK", answers.written, (await upload(open("WRITE", { path, ...fields }), bytes)).payload).bytes;
    },
    async tarIn(folder, archive, { chunkBytes, ...rest } = {}) {
      const answer = await upload(open("TAR_IN", { folder, ...rest }), archive, chunkBytes);
      return decodeFields("OK", answers.unpacked, answer.payload);
    },
    tarOut: (path, fields = {}) => download(open("TAR_OUT", { path, ...fields })),
    async [Symbol.asyncDispose]() {
      child.stdin.end();
      await ended;
    },
  };
}

/** Creates a folder for one test. Disposing of it removes everything, however deep or locked. */
export function temporaryFolder(): { path: string } & Disposable {
  const path = mkdtempSync(join(tmpdir(), "caisson-test-files-"));
  chmodSync(path, 0o777);
  return {
    path,
    [Symbol.dispose]() {
      // Node's own removal recurses and uses whole paths; a tree can be deeper than both allow.
      execFileSync("rm", ["-rf", "--", path]);
      rmSync(path, { recursive: true, force: true });
    },
  };
}

export const hasStrace = existsSync("/usr/bin/strace");

/** Returns the code of the `Refused` that a promise rejects with, or `accepted`. */
export async function refusal(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof Refused) return error.code;
    throw error;
  }
  return "accepted";
}
