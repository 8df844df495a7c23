import type { Duplex } from "node:stream";
import { CaissonError } from "../../contract/error/error.ts";
import { answers, decodeFields, type Encodable, encodeFields, entries, type Shape, shapes } from "../../sandbox/guest/fields.ts";
import { createFrameParser, encodeFrame, type FrameName, frameName } from "../../sandbox/guest/frame.ts";
import { failure, failureNumber } from "./failure.ts";
import type { FakeEnd, FakeProcess, OutputSink } from "./fake-process.ts";
import { type FileRequests, fileRequests, type GuestStream, hasField, type Wire } from "./file-requests.ts";
import type { FakeMachine } from "./machine.ts";
import { portRequests } from "./port-requests.ts";

/** Plays the guest's part of the protocol for a machine in memory, over one connection. */
export function serveGuest(machine: FakeMachine, socket: Duplex, options: { uid: number; rootAllowed: boolean }): void {
  const session = new GuestSession(machine, socket, options);
  const parser = createFrameParser({
    receiver: "guest",
    onFrame: (type, stream, payload) => session.onFrame(frameName(type) as FrameName, stream, payload),
  });
  // Deferred: an answer during the host's own write would overtake that write.
  socket.on("data", (chunk: Buffer) => queueMicrotask(() => parser.push(chunk)));
  socket.on("close", () => session.close());
  socket.on("end", () => socket.end());
  socket.on("error", () => {});
}

const endKinds = { exited: 1, signaled: 2, timedOut: 3, output: 5, cancelled: 6 } as const satisfies Record<FakeEnd["kind"], number>;
/** Frames that belong to a stream opened by an earlier request. */
const followers: ReadonlySet<FrameName> = new Set(["DATA", "END", "CREDIT", "ACK", "STDIN", "STDIN_END", "RESIZE", "CANCEL"]);
const FRAME_DATA_BYTES = 65_536;

class GuestSession {
  readonly #machine: FakeMachine;
  readonly #socket: Duplex;
  readonly #options: { uid: number; rootAllowed: boolean };
  readonly #streams = new Map<number, GuestStream>();
  readonly #files: FileRequests;
  readonly #ports: ReturnType<typeof portRequests>;
  #lastAccepted = 0;

  constructor(machine: FakeMachine, socket: Duplex, options: { uid: number; rootAllowed: boolean }) {
    this.#machine = machine;
    this.#socket = socket;
    this.#options = options;
    const wire: Wire = {
      machine,
      uidOf: (user) => this.#uidOf(user),
      open: (stream, handler) => this.#streams.set(stream, handler),
      close: (stream) => this.#streams.delete(stream),
      send: (type, stream, payload) => this.#send(type, stream, payload),
      ok: (stream, shape, values) => this.#ok(stream, shape, values),
      entry: (stream, shape, values) => this.#write(encodeFields("ENTRY", stream, shape, values)),
      event: (stream, values) => this.#write(encodeFields("WATCH_EVENT", stream, shapes.WATCH_EVENT, values)),
      nextAccepted: () => {
        this.#lastAccepted += 2;
        return this.#lastAccepted;
      },
      sendAccepted: (stream, values) => this.#write(encodeFields("ACCEPTED", stream, shapes.ACCEPTED, values)),
      fail: (stream, error) => this.#fail(stream, error),
    };
    this.#files = fileRequests(wire);
    this.#ports = portRequests(wire);
  }

  onFrame(type: FrameName, stream: number, payload: Buffer): void {
    try {
      this.#dispatch(type, stream, payload);
    } catch (error) {
      this.#fail(stream, error);
    }
  }

  close(): void {
    const streams = [...this.#streams.values()];
    this.#streams.clear();
    for (const handler of streams) handler.onCancel?.();
  }

  #dispatch(type: FrameName, stream: number, payload: Buffer): void {
    const handler = this.#handlers[type] ?? this.#ports[type];
    if (handler !== undefined) handler(stream, payload);
    else if (followers.has(type)) {
      // The stream may have just closed; its last frames crossed our end.
      this.#streams.get(stream)?.onFrame(type, payload);
      if (type === "CANCEL") this.#streams.delete(stream);
    } else this.#files.handle(type, stream, payload);
  }

  readonly #handlers: Partial<Record<FrameName, (stream: number, payload: Buffer) => void>> = {
    HELLO: () => this.#welcome(),
    PING: (stream, payload) => this.#send("PONG", stream, payload),
    SHUTDOWN: (stream) => {
      this.#machine.killAll();
      this.#ok(stream, answers.nothing, {});
    },
    FENCE: (stream, payload) => {
      const { name, epoch } = decodeFields("FENCE", shapes.FENCE, payload);
      const before = this.#machine.owners.get(name);
      if (before !== undefined && before.epoch > epoch) return this.#fail(stream, failure("superseded", "a later holder works here"));
      if (before !== undefined && before.epoch < epoch) before.supersede();
      this.#machine.owners.set(name, { epoch, supersede: () => this.#socket.destroy() });
      this.#ok(stream, answers.nothing, {});
    },
    SPAWN: (stream, payload) => this.#spawn(stream, payload),
    ATTACH: (stream, payload) => {
      const { ref } = decodeFields("ATTACH", shapes.ATTACH, payload);
      this.#attach(stream, this.#byRef(ref), payload, { existing: true });
    },
    SIGNAL: (stream, payload) => {
      const { ref, signal, tree } = decodeFields("SIGNAL", shapes.SIGNAL, payload);
      const process = this.#byRef(ref);
      for (const each of tree ? process.tree() : [process]) each.signal(signal);
      this.#ok(stream, answers.nothing, {});
    },
    KILL: (stream, payload) => {
      this.#byRef(decodeFields("KILL", shapes.KILL, payload).ref).killTree({ kind: "cancelled" });
      this.#ok(stream, answers.nothing, {});
    },
    FORGET: (stream, payload) => this.#forget(stream, decodeFields("FORGET", shapes.FORGET, payload).ref),
    LIST: (stream) => this.#list(stream),
    LISTENERS: (stream) => {
      for (const [port, { owner }] of this.#machine.listeners) {
        if (owner.end === null)
          this.#write(encodeFields("ENTRY", stream, entries.listener, { port, uid: owner.uid, address: "127.0.0.1" }));
      }
      this.#ok(stream, answers.nothing, {});
    },
  };

  #welcome(): void {
    const { uid, rootAllowed } = this.#options;
    const welcome = {
      version: 1,
      guestVersion: "fake",
      bootId: this.#machine.bootId,
      uid,
      gid: uid,
      rootAllowed,
      fences: true,
      keepsLast: true,
    };
    this.#write(encodeFields("WELCOME", 0, shapes.WELCOME, welcome));
  }

  #spawn(stream: number, payload: Buffer): void {
    const request = decodeFields("SPAWN", shapes.SPAWN, payload);
    const existing = this.#machine.byRef.get(request.ref);
    if (existing !== undefined) {
      this.#attach(stream, existing, payload, { existing: true });
      return;
    }
    if (this.#machine.forgotten.has(request.ref)) throw failure("gone", `${request.ref} was forgotten`);
    const process = this.#machine.start({
      ...request,
      env: Object.fromEntries(request.env.map((pair) => [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)])),
      uid: this.#uidOf(request.user),
      terminal: request.pty ? { cols: request.cols, rows: request.rows } : null,
    });
    this.#attach(stream, process, payload, { existing: false });
  }

  #attach(stream: number, process: FakeProcess, payload: Buffer, { existing }: { existing: boolean }): void {
    const from = offsetsOf(payload);
    const sink: OutputSink = {
      onOutput: (descriptor, offset, data) => {
        for (let at = 0; at < data.length; at += FRAME_DATA_BYTES)
          this.#output(stream, descriptor, offset + at, data.subarray(at, at + FRAME_DATA_BYTES));
      },
      onStdinConsumed: (offset) => this.#send("STDIN_ACK", stream, u64(offset)),
      onTakenOver: () => this.#fail(stream, failure("busy", "another stream attached")),
      onEnded: (ended) => this.#ended(stream, ended),
    };
    const started = {
      ref: process.ref ?? "",
      pid: process.pid,
      existing,
      stdinBytes: process.stdinBytes,
      stdinWritten: process.stdinConsumed,
      pty: process.terminal !== null,
      ...process.totals(),
      ended: process.end !== null,
    };
    if (!process.holdsFrom(from)) throw failure("gone", "output at that offset was dropped");
    this.#write(encodeFields("STARTED", stream, shapes.STARTED, started));
    this.#streams.set(stream, {
      onFrame: (frame, data) => this.#onProcessFrame(process, sink, frame, data),
      onCancel: () => process.detach(sink),
    });
    process.attach(sink, from);
  }

  #onProcessFrame(process: FakeProcess, sink: OutputSink, type: FrameName, payload: Buffer): void {
    if (type === "ACK") process.acknowledge(payload[0] as 1 | 2, Number(payload.readBigUInt64LE(1)));
    else if (type === "STDIN") process.feed(Number(payload.readBigUInt64LE(0)), payload.subarray(8));
    else if (type === "STDIN_END") process.endStdin();
    else if (type === "CANCEL") process.detach(sink);
    else if (type === "RESIZE" && process.terminal !== null) {
      const { cols, rows } = decodeFields(type, shapes.RESIZE, payload);
      process.terminal = { cols, rows };
    }
  }

  #ended(stream: number, process: FakeProcess): void {
    const end = process.end as FakeEnd;
    this.#write(
      encodeFields("ENDED", stream, shapes.ENDED, {
        kind: endKinds[end.kind],
        exitCode: end.kind === "exited" ? end.exitCode : 0,
        signal: end.kind === "signaled" ? end.signal : 0,
        ...process.totals(),
        durationMs: process.endedMs - process.startedMs,
        memoryKills: 0,
      }),
    );
  }

  #forget(stream: number, ref: string): void {
    const process = this.#byRef(ref);
    if (process.end === null) throw failure("busy", `${ref} runs`);
    this.#machine.byRef.delete(ref);
    this.#machine.forgotten.add(ref);
    this.#ok(stream, answers.nothing, {});
  }

  #list(stream: number): void {
    const ended = [...this.#machine.byRef.values()].filter((process) => process.end !== null);
    for (const process of [...this.#machine.live(), ...ended]) {
      this.#write(
        encodeFields("ENTRY", stream, entries.process, {
          ref: process.ref ?? "",
          pid: process.pid,
          parentPid: process.parent?.pid ?? 1,
          state: process.end === null ? 1 : 2,
          command: process.argv.join(" ").replaceAll("\0", " ").slice(0, 1_024),
          uid: process.uid,
          startMs: Math.max(0, process.startedMs - this.#machine.startedMs),
          keepsLast: process.keepsLast,
        }),
      );
    }
    this.#ok(stream, answers.nothing, {});
  }

  #byRef(ref: string): FakeProcess {
    const process = this.#machine.byRef.get(ref);
    if (process !== undefined) return process;
    throw this.#machine.forgotten.has(ref) ? failure("gone", `${ref} was forgotten`) : failure("not_found", `there is no ${ref}`);
  }

  #uidOf(user: string): number {
    if (user === "" || user === "user") return this.#options.uid;
    const uid = user === "root" ? 0 : Number(user);
    if (uid === 0 && !this.#options.rootAllowed) throw failure("denied", "root is not allowed");
    return uid;
  }

  #output(stream: number, descriptor: 1 | 2, offset: number, data: Buffer): void {
    this.#send("OUTPUT", stream, Buffer.concat([Buffer.from([descriptor]), u64(offset), data]));
  }

  #ok<S extends Shape>(stream: number, shape: S, values: Encodable<S>): void {
    this.#write(encodeFields("OK", stream, shape, values));
  }

  #fail(stream: number, error: unknown): void {
    this.#streams.delete(stream);
    if (error instanceof CaissonError && error.code === "protocol") this.#socket.destroy();
    else this.#write(encodeFields("ERROR", stream, shapes.ERROR, failureNumber(error)));
  }

  #send(type: FrameName, stream: number, payload?: Uint8Array): void {
    this.#write(encodeFrame(type, stream, payload));
  }

  #write(frame: Buffer): void {
    if (!this.#socket.destroyed && !this.#socket.writableEnded) this.#socket.write(frame);
  }
}

/** Returns the requested offsets. Null, for an absent field, means the first byte that was not acknowledged. */
function offsetsOf(payload: Buffer): { stdout: number | null; stderr: number | null } {
  const { stdoutFrom, stderrFrom } = decodeFields("ATTACH", shapes.ATTACH, payload);
  return { stdout: hasField(payload, 12) ? stdoutFrom : null, stderr: hasField(payload, 13) ? stderrFrom : null };
}

function u64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}
