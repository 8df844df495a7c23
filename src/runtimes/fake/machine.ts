import { randomBytes } from "node:crypto";
import { type Duplex, duplexPair } from "node:stream";
import type { Clock } from "./clock.ts";
import { failure } from "./failure.ts";
import { FakeProcess } from "./fake-process.ts";
import { allows, type MemoryFiles } from "./memory-files.ts";
import type { Program, ProgramIo } from "./program.ts";
import { runShell } from "./shell.ts";

export interface StartRequest {
  ref: string | null;
  argv: readonly string[];
  env: Readonly<Record<string, string>>;
  cwd: string;
  uid: number;
  terminal: { cols: number; rows: number } | null;
  stdin: boolean;
  timeoutMs: number;
  outputBytesMax: number;
  keepLast: boolean;
}

const FIRST_PORT = 40_000;

/** The inside of a fake sandbox: files, processes and ports in memory. It outlives connections, as a guest does. */
export class FakeMachine {
  readonly files: MemoryFiles;
  readonly clock: Clock;
  readonly bootId = randomBytes(16);
  readonly startedMs: number;
  readonly byRef = new Map<string, FakeProcess>();
  readonly forgotten = new Set<string>();
  /** The fence of each name: the latest epoch, and how a later one disconnects its holder. */
  readonly owners = new Map<string, { epoch: number; supersede: () => void }>();
  readonly listeners = new Map<number, { owner: FakeProcess; onConnection: (connection: Duplex) => void }>();
  readonly #programs: ReadonlyMap<string, Program>;
  readonly #processes = new Set<FakeProcess>();
  /** Claims by port, newest last. A port that was claimed once stays with the guest. */
  readonly #claims = new Map<number, ((connection: Duplex) => void)[]>();
  #nextPid = 2;

  constructor(options: { files: MemoryFiles; clock: Clock; programs: ReadonlyMap<string, Program> }) {
    this.files = options.files;
    this.clock = options.clock;
    this.#programs = options.programs;
    this.startedMs = this.clock.now();
  }

  live(): FakeProcess[] {
    return [...this.#processes].filter((process) => process.end === null);
  }

  /** Throws `not_found` for a missing program or cwd, `not_executable`. */
  start(request: StartRequest, parent: FakeProcess | null = null): FakeProcess {
    const program = this.#programFor(request);
    if (this.files.node(request.cwd).kind !== "directory") throw failure("not_directory", `${request.cwd} is not a folder`);
    const process = new FakeProcess({ ...request, pid: this.#nextPid++, parent, clock: this.clock });
    this.#processes.add(process);
    parent?.children.add(process);
    if (request.ref !== null) this.byRef.set(request.ref, process);
    void process
      .run(() => program(this.#ioFor(process, request)))
      .then(() => {
        this.#processes.delete(process);
        for (const [port, { owner }] of this.listeners) if (owner === process) this.listeners.delete(port);
      });
    return process;
  }

  killAll(): void {
    for (const process of this.live()) process.killTree({ kind: "cancelled" });
  }

  /** Connects to a port, from inside or from the host. Returns null if nothing listens there. */
  connect(port: number): Duplex | null {
    const listener = this.listeners.get(port);
    const claims = this.#claims.get(port);
    if (claims === undefined && (listener === undefined || listener.owner.end !== null)) return null;
    const [theirs, ours] = connectedPair();
    const claim = claims?.at(-1);
    if (claims === undefined) listener?.onConnection(theirs);
    else if (claim === undefined) theirs.resume().end(nobodyServes);
    else claim(theirs);
    return ours;
  }

  /** Claims a port for the host. Returns a function that releases it, or null if a program listens on the port. */
  claim(port: number, onConnection: (connection: Duplex) => void): (() => void) | null {
    if (this.listeners.has(port)) return null;
    const claims = this.#claims.get(port) ?? [];
    this.#claims.set(port, claims);
    claims.push(onConnection);
    return () => {
      const at = claims.indexOf(onConnection);
      if (at >= 0) claims.splice(at, 1);
    };
  }

  /**
   * Finds the program: a registered name, bare or in a usual folder; a script in the tree; or `sh -c` with a script
   * that this machine understands.
   */
  #programFor(request: StartRequest): Program {
    const [name = "", flag, script, as] = request.argv;
    const base = /^(\/usr)?\/s?bin\//.test(name) ? name.slice(name.lastIndexOf("/") + 1) : name;
    if (base === "sh" && flag === "-c" && script !== undefined) {
      const known = as === undefined ? undefined : this.#programs.get(as);
      return known ?? ((io) => runShell(script, io));
    }
    const registered = this.#programs.get(base);
    if (registered !== undefined) return registered;
    const path = name.startsWith("/") ? name : `${request.cwd}/${name}`;
    if (!name.includes("/") || !this.files.exists(path)) throw failure("not_found", `${name}: no such program`);
    const node = this.files.node(path);
    if (node.kind !== "file" || !allows(node, request.uid === 0 ? node.uid : request.uid, 0o1))
      throw failure("not_executable", `${name} is not executable`);
    return (io) => runShell(node.content.toString(), io);
  }

  #ioFor(process: FakeProcess, request: StartRequest): ProgramIo {
    const machine = this;
    const { argv, env, cwd, uid } = request;
    return {
      argv,
      env,
      cwd,
      uid,
      pid: process.pid,
      files: this.files,
      get terminal() {
        return process.terminal;
      },
      stdout: (data) => process.write(1, data),
      stderr: (data) => process.write(2, data),
      read: () => process.read(),
      sleep: (ms) => process.sleep(ms),
      onSignal: (name, handler) => process.onSignal(name, handler),
      signal: (number) => process.signal(number),
      exit: (code) => process.exit(code),
      start: (command, options) =>
        machine.start(
          {
            ...request,
            ref: null,
            argv: command,
            terminal: null,
            stdin: false,
            timeoutMs: 0,
            outputBytesMax: 0,
            keepLast: false,
            ...options,
          },
          process,
        ),
      run: (command, io) => machine.#programFor({ ...request, argv: command })({ ...io, argv: command }),
      listen(onConnection) {
        const port = FIRST_PORT + machine.listeners.size;
        machine.listeners.set(port, { owner: process, onConnection });
        return port;
      },
      connect: (port) => machine.connect(port),
    };
  }
}

const nobodyText = "No process on the host serves this sandbox's network now.\n";
const nobodyServes = `HTTP/1.1 503 Service Unavailable\r\ncontent-length: ${nobodyText.length}\r\nconnection: close\r\n\r\n${nobodyText}`;

/**
 * Returns two ends of a connection; if one breaks off, the other notices. A missing error listener must not end this
 * process.
 */
function connectedPair(): [Duplex, Duplex] {
  const [first, second] = duplexPair({ allowHalfOpen: true });
  const tie = (one: Duplex, other: Duplex) => {
    one.on("error", () => {});
    one.once("close", () => {
      if (!(one.readableEnded && one.writableFinished)) other.destroy(new Error("the connection was reset"));
    });
  };
  tie(first, second);
  tie(second, first);
  return [first, second];
}
