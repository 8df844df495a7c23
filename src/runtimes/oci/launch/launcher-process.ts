import { spawn } from "node:child_process";
import type { Socket } from "node:net";
import { endianness } from "node:os";
import type { Writable } from "node:stream";
import { StringDecoder } from "node:string_decoder";

export interface LauncherProgram {
  guestPath: string;
  /** The launcher's `PATH`. */
  path: string;
}

/** Callbacks for a launcher's reports. */
export interface LauncherWatch {
  onOutput(text: string): void;
  onComplaint(text: string): void;
  /** The launcher and its output have ended. The status is null after a signal. */
  onEnd(status: number | null): void;
  /** The launcher could not be started. No other callback follows. */
  onFailure(cause: Error): void;
}

/** A running launcher, however it was started. */
export interface LauncherProcess {
  /** Calls back with the launcher's pid, unless it could not be started. */
  whenStarted(act: (pid: number) => void): void;
  /** Sends the whole plan. */
  give(plan: Buffer): void;
  kill(): void;
  /** Releases a launcher that holds namespaces until its caller has taken them over. */
  detach(): void;
}

/**
 * Starts a launcher as a child of this process, so that it can receive descriptors. With `holds`, it waits for
 * `detach`.
 */
export function spawnLauncher(
  { guestPath, path }: LauncherProgram,
  what: string,
  { descriptors, holds, watch }: { descriptors: readonly number[]; holds: boolean; watch: LauncherWatch },
): LauncherProcess {
  const child = spawn(guestPath, ["launch", what], {
    stdio: ["pipe", "pipe", "pipe", ...(holds ? ["pipe" as const] : descriptors)],
    env: { PATH: path },
    cwd: "/",
  });
  child.stdout?.setEncoding("utf8").on("data", watch.onOutput);
  child.stderr?.setEncoding("utf8").on("data", watch.onComplaint);
  // The launcher may exit before it has read its plan; its exit status tells why.
  child.stdin?.on("error", () => {});
  child.on("error", watch.onFailure);
  child.on("close", (status) => watch.onEnd(status));
  return {
    whenStarted(act) {
      if (child.pid !== undefined) act(child.pid);
    },
    give: (plan) => child.stdin?.end(plan),
    kill: () => child.kill("SIGKILL"),
    detach: () => (child.stdio[3] as Writable | undefined)?.end(),
  };
}

/** The frame format of `caisson-guest launches`; see guest/src/launch/serve.c. */
const HEADER_BYTES = 12;
const isLittle = endianness() === "LE";
const requests = { start: 1, input: 2, kill: 3 } as const;
const answers = { started: 1, output: 2, complaint: 3, ended: 4 } as const;
/** A server that is unused for this long ends: a process launches several times in a row, or is done. */
const REST_MS = 2_000;

interface Served {
  watch: LauncherWatch;
  output: StringDecoder;
  complaint: StringDecoder;
  started: ((pid: number) => void)[];
  pid: number | null;
}

/**
 * Starts launchers through a small helper process, whose forks take a fraction of a millisecond. A fork by Node itself
 * blocks it for one millisecond per ten MiB of its memory. The helper lives as long as there are launches, and a little
 * longer.
 */
export function createLaunchServer(program: LauncherProgram): (what: string, watch: LauncherWatch) => LauncherProcess {
  let server: ReturnType<typeof startServer> | null = null;
  return (what, watch) => {
    if (server === null || server.isOver()) server = startServer(program);
    return server.launch(what, watch);
  };
}

function startServer({ guestPath, path }: LauncherProgram) {
  const child = spawn(guestPath, ["launches"], { stdio: ["pipe", "pipe", "ignore"], env: { PATH: path }, cwd: "/" });
  // Node represents a child's pipes as sockets.
  const [stdin, stdout] = [child.stdin as Socket, child.stdout as Socket];
  const launches = new Map<number, Served>();
  let last = 0;
  let isOver = false;
  let resting: NodeJS.Timeout | undefined;
  let rest: Buffer = Buffer.alloc(0);

  const send = (id: number, kind: number, bytes: Buffer) => {
    const header = Buffer.alloc(HEADER_BYTES);
    for (const [at, value] of [id, kind, bytes.length].entries()) writeNumber(header, value, at * 4);
    stdin.write(Buffer.concat([header, bytes]));
  };
  const take = (id: number, kind: number, bytes: Buffer) => {
    const served = launches.get(id);
    if (served === undefined) return;
    if (kind === answers.output) served.watch.onOutput(served.output.write(bytes));
    else if (kind === answers.complaint) served.watch.onComplaint(served.complaint.write(bytes));
    else if (kind === answers.started) {
      served.pid = readNumber(bytes, 0);
      for (const act of served.started.splice(0)) act(served.pid);
    } else if (kind === answers.ended) {
      const status = readNumber(bytes, 0);
      leave(id);
      served.watch.onEnd(status < 0 ? null : status);
    }
  };
  /** Keeps this process alive, but only while there are launches. */
  const hold = () => {
    clearTimeout(resting);
    stdout.ref();
  };
  const leave = (id: number) => {
    launches.delete(id);
    if (launches.size > 0) return;
    stdout.unref();
    resting = setTimeout(() => {
      isOver = true;
      stdin.end();
    }, REST_MS).unref();
  };
  const end = (tell: (watch: LauncherWatch) => void) => {
    isOver = true;
    clearTimeout(resting);
    for (const [id, { watch }] of [...launches]) {
      launches.delete(id);
      tell(watch);
    }
  };

  child.unref();
  stdin.unref();
  stdout.unref();
  stdin.on("error", () => {});
  stdout.on("data", (chunk: Buffer) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    while (rest.length >= HEADER_BYTES) {
      const whole = HEADER_BYTES + readNumber(rest, 8);
      if (rest.length < whole) break;
      const [id, kind, bytes] = [readNumber(rest, 0), readNumber(rest, 4), rest.subarray(HEADER_BYTES, whole)];
      rest = rest.subarray(whole);
      take(id, kind, bytes);
    }
  });
  child.on("error", (cause) => end((watch) => watch.onFailure(cause)));
  // The server's launches died with it.
  child.on("close", () => end((watch) => watch.onEnd(null)));

  return {
    isOver: () => isOver,
    launch(what: string, watch: LauncherWatch): LauncherProcess {
      last += 1;
      const id = last;
      const served: Served = { watch, output: new StringDecoder("utf8"), complaint: new StringDecoder("utf8"), started: [], pid: null };
      launches.set(id, served);
      hold();
      send(id, requests.start, Buffer.from(what));
      return {
        whenStarted(act) {
          if (served.pid === null) served.started.push(act);
          else act(served.pid);
        },
        give: (plan) => send(id, requests.input, plan),
        kill() {
          if (launches.has(id)) send(id, requests.kill, Buffer.alloc(0));
        },
        detach() {},
      };
    },
  };
}

/** Reads a number in the machine's byte order. */
function readNumber(bytes: Buffer, at: number): number {
  return isLittle ? bytes.readInt32LE(at) : bytes.readInt32BE(at);
}

function writeNumber(bytes: Buffer, value: number, at: number): void {
  if (isLittle) bytes.writeInt32LE(value, at);
  else bytes.writeInt32BE(value, at);
}
