import { type OutputFrame, readOutputFrame, stdinFrame } from "../contract/api/stream-frames.ts";
import type { ProcessClientMessage, ProcessServerMessage } from "../contract/api/streams.ts";
import { CaissonError } from "../contract/error/error.ts";
import type { Ended } from "../contract/outcome.ts";
import { ignore } from "../lib/failures.ts";
import { ATTEMPTS_MAX, pauseBefore } from "./attempts.ts";
import { createItemQueue } from "./item-queue.ts";
import { createPacedInput } from "./paced-input.ts";
import { createRequests } from "./process-requests.ts";
import { type Connection, call } from "./request.ts";
import { whileAlive } from "./sign-of-life.ts";
import { openStream, type StreamSocket } from "./stream-socket.ts";
import { SILENCE_MS, type SilenceWatch, watchSilence } from "./watch-silence.ts";

/** How much output may be in flight, and how often the client acknowledges it. */
const WINDOW_BYTES = 512 * 1024;
const TELL_BYTES = WINDOW_BYTES / 4;

type MessageFields<Type extends string> = Omit<Extract<ProcessClientMessage, { type: Type }>, "type" | "windowBytes">;
export type StartProcess = MessageFields<"start">;
export type AttachProcess = Omit<MessageFields<"attach">, "ref">;
interface Where {
  sandbox: string;
  /** Aborts opening the stream; afterwards it has no effect on the process. */
  signal?: AbortSignal;
  /** Overrides the silence before a health check, for tests. */
  silenceMs?: number;
}

/** A process in a sandbox, over a connection. Its methods give the same guarantees as those of `Process`. */
export interface RemoteProcess {
  readonly ref: string;
  readonly pid: number;
  /** The command with secrets redacted, if it contained any. */
  readonly shownArgv?: readonly string[];
  /** For one consumer; a slow one slows the process down. Throws `superseded` if another reader took over. */
  readonly output: AsyncIterable<OutputFrame>;
  /**
   * Resolves once the process ended and its output was consumed or discarded. Never rejects: gives `lost` if the
   * connection broke and the process cannot be reached again.
   */
  readonly ended: Promise<Ended>;
  discardOutput(): void;
  write(data: Uint8Array): Promise<void>;
  closeStdin(): Promise<void>;
  resize(size: { cols: number; rows: number }): Promise<void>;
  signal(name: string, options?: { scope?: "tree" | "leader" }): Promise<void>;
  kill(): Promise<void>;
  /** Stops listening; the process continues. */
  detach(): void;
}

/**
 * Starts a process. It ends with this connection unless `detachGraceMs` or `keepLastOutput` is set; then a broken
 * connection is reopened, at the same point of the output, until the grace period is over.
 */
export function openProcess(to: Connection, where: Where, start: StartProcess): Promise<RemoteProcess> {
  const resumes = (start.detachGraceMs ?? 0) > 0 || start.keepLastOutput === true;
  const { detachGraceMs } = start;
  return connectProcess(to, { ...where, first: { type: "start", ...start }, resumes, again: { detachGraceMs } });
}

/** Takes over the output of a process, from the first stored byte or from these offsets. */
export function attachProcess(
  to: Connection,
  { ref, ...where }: Where & { ref: string },
  attach: AttachProcess = {},
): Promise<RemoteProcess> {
  const { follow, detachGraceMs } = attach;
  return connectProcess(to, {
    ...where,
    first: { type: "attach", ref, ...attach },
    resumes: follow !== false,
    again: { detachGraceMs },
  });
}

type First = Extract<ProcessClientMessage, { type: "start" | "attach" }>;
interface Opening extends Where {
  first: First;
  resumes: boolean;
  again: { detachGraceMs: number | undefined };
}
type Started = Extract<ProcessServerMessage, { type: "started" }>;

async function connectProcess(to: Connection, opening: Opening): Promise<RemoteProcess> {
  const state = createProcessState(opening);
  const first = await connectOnce(to, { ...opening, state });
  const { ref, pid, shownArgv } = first.started;
  state.connected(first.socket, first.started);
  void keepConnected(to, { ...opening, ref, state }, first);
  const { output, input, requests } = state;
  return {
    ref,
    pid,
    ...(shownArgv && { shownArgv }),
    output,
    ended: Promise.all([state.ended, output.drained]).then(([ended]) => ended),
    discardOutput: () => output.discard(),
    write: (data) => input.write(data),
    async closeStdin() {
      await input.flush();
      await requests.ask({ type: "closeStdin" });
    },
    async resize(size) {
      await requests.ask({ type: "resize", ...size });
    },
    async signal(name, options = {}) {
      await requests.ask({ type: "signal", signal: name, ...options });
    },
    async kill() {
      // A process that has ended may have left others behind, and its connection is closed.
      if ((await requests.ask({ type: "kill" })) === "end") await killRest(to, { sandbox: opening.sandbox, ref });
    },
    detach: () => state.detach(),
  };
}

/**
 * Kills the rest of a process tree whose leader has ended. If the station has forgotten the process, nothing is left to
 * kill.
 */
async function killRest(to: Connection, { sandbox, ref }: { sandbox: string; ref: string }): Promise<void> {
  await call(to, "processes.kill", { params: { sandbox, process: ref } }).catch((error: unknown) => {
    const isGone = error instanceof CaissonError && ["not_found", "gone", "lost"].includes(error.code);
    if (!isGone) throw error;
  });
}

/** Reconnects until the process has ended or can no longer be reached. */
async function keepConnected(to: Connection, options: Opening & { ref: string; state: ProcessState }, first: Connected): Promise<void> {
  const { ref, state, resumes, again } = options;
  let { closed } = first;
  for (;;) {
    const { error } = await closed;
    state.disconnected();
    if (error === null || error.code !== "unavailable" || !resumes || state.isOver()) return state.lost(error);
    let connected: Connected | null = null;
    for (let attempt = 1; connected === null; attempt += 1) {
      await pauseBefore(attempt, undefined);
      if (state.isOver()) return;
      const attach: First = { type: "attach", ref, ...state.offsets(), ...(again.detachGraceMs !== undefined && again) } as First;
      const { sandbox, silenceMs } = options;
      connected = await connectOnce(to, { sandbox, first: attach, resumes, ...(silenceMs && { silenceMs }), state }).catch(
        (reason: unknown) => {
          const mayReturn = reason instanceof CaissonError && (reason.code === "unavailable" || reason.code === "busy");
          if (!mayReturn || attempt >= ATTEMPTS_MAX) state.lost(reason as CaissonError);
          return null;
        },
      );
    }
    ({ closed } = connected);
    state.connected(connected.socket, connected.started);
  }
}

interface Connected {
  socket: StreamSocket;
  started: Started;
  /** Resolves when the socket closes or stops responding. */
  closed: StreamSocket["closed"];
}

/**
 * Resolves when the station has attached the process. Watches the connection for silence: a dead network closes
 * nothing.
 */
async function connectOnce(
  to: Connection,
  {
    sandbox,
    signal,
    silenceMs = to.silenceMs ?? SILENCE_MS,
    first,
    resumes,
    state,
  }: Where & Pick<Opening, "first" | "resumes"> & { state: ProcessState },
): Promise<Connected> {
  const started = Promise.withResolvers<Started>();
  let silence: SilenceWatch | null = null;
  /** Ignores messages of a connection that we gave up: the next one repeats them. */
  const isHeard = () => {
    silence?.reset();
    return silence?.hasFallen() !== true;
  };
  const socket = await openStream(to, "processes.stream", {
    params: { sandbox },
    signal,
    onMessage(message) {
      if (!isHeard()) return;
      if (message.type === "started") started.resolve(message as Started);
      else state.onMessage(message as ProcessServerMessage);
    },
    onBytes: (frame) => isHeard() && state.onOutput(readOutputFrame(frame)),
  });
  socket.send({ ...first, windowBytes: WINDOW_BYTES });
  const fallen = Promise.withResolvers<{ error: CaissonError }>();
  const watch = () => {
    silence = watchSilence(socket, silenceMs);
    void silence.fallen.then(fallen.resolve);
  };
  if (resumes) watch();
  const closed = Promise.race([socket.closed, fallen.promise]);
  const failed = closed.then(({ error }) => {
    throw error ?? new CaissonError("unavailable", "the station closed the connection");
  });
  void ignore(failed, "awaited in the race below; a connected stream closes later, too");
  try {
    const start = await whileAlive(to, () => Promise.race([started.promise, failed]));
    // Not earlier, because the station answers no messages here before the process exists. A stream that resumes is
    // watched from the start, because opening a second connection does it no harm.
    if (!resumes) watch();
    return { socket, started: start, closed };
  } catch (error) {
    socket.abandon();
    throw error;
  }
}

type ProcessState = ReturnType<typeof createProcessState>;

/** The state that outlives a connection. */
function createProcessState({ first }: Pick<Opening, "first">) {
  const next = { stdout: 0, stderr: 0 };
  if (first.type === "attach") Object.assign(next, { stdout: first.stdoutOffset ?? 0, stderr: first.stderrOffset ?? 0 });
  const input = createPacedInput();
  const requests = createRequests();
  const ended = Promise.withResolvers<Ended>();
  let over = false;
  let socket: StreamSocket | null = null;
  let inputBase: number | null = null;
  let takenBytes = 0;
  let toldBytes = 0;
  const output = createItemQueue<OutputFrame>(({ data }) => {
    takenBytes += data.length;
    if (takenBytes - toldBytes < TELL_BYTES) return;
    toldBytes = takenBytes;
    socket?.send({ type: "taken", bytes: takenBytes });
  });
  const finish = (outcome: Ended, error?: CaissonError) => {
    if (over) return;
    over = true;
    ended.resolve(outcome);
    output.end(error);
    const refusal = error ?? new CaissonError("gone", "the process has ended");
    input.fail(refusal);
    requests.finish(error);
  };
  const lostOutcome = (): Ended => ({ kind: "lost", durationMs: 0, stdoutBytes: next.stdout, stderrBytes: next.stderr, memoryKills: 0 });
  return {
    input,
    output,
    requests,
    ended: ended.promise,
    isOver: () => over,
    offsets: () => ({ stdoutOffset: next.stdout, stderrOffset: next.stderr }),
    connected(opened: StreamSocket, { stdinBytes }: Started) {
      socket = opened;
      inputBase ??= stdinBytes;
      input.connect((chunk) => opened.sendBytes(stdinFrame(chunk)), stdinBytes - inputBase);
      requests.connect(opened);
    },
    disconnected() {
      socket = null;
      // Acknowledgements count per connection.
      takenBytes = 0;
      toldBytes = 0;
      input.disconnect();
      requests.disconnect();
    },
    onOutput(frame: OutputFrame) {
      next[frame.stream] = frame.offset + frame.data.length;
      output.push(frame);
    },
    onMessage(message: ProcessServerMessage) {
      if (message.type === "ended") finish(message.ended);
      else if (message.type === "taken") input.acknowledge(message.bytes);
      else if (message.type === "stdinClosed") input.fail(new CaissonError(message.problem.code, message.problem.detail));
      else if (message.type === "answered") requests.settle(message.request, message.problem);
    },
    /** The connection ended and will not be reopened. */
    lost: (error: CaissonError | null) => finish(lostOutcome(), error ?? new CaissonError("lost", "the connection to the process ended")),
    detach() {
      socket?.send({ type: "detach" });
      finish(lostOutcome());
      socket?.close();
    },
  };
}
