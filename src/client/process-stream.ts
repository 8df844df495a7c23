import { type OutputFrame, readOutputFrame, stdinFrame } from "../contract/api/stream-frames.ts";
import type { ProcessClientMessage, ProcessServerMessage } from "../contract/api/streams.ts";
import { CaissonError } from "../contract/error.ts";
import type { Ended } from "../contract/outcome.ts";
import { ATTEMPTS_MAX, pauseBefore } from "./attempts.ts";
import { createPacedInput } from "./paced-input.ts";
import { createRequests } from "./process-requests.ts";
import { type Connection, call } from "./request.ts";
import { whileAlive } from "./sign-of-life.ts";
import { openStream, type StreamSocket } from "./stream-socket.ts";
import { createTakenQueue } from "./taken-queue.ts";
import { SILENCE_MS, type SilenceWatch, watchSilence } from "./watch-silence.ts";

/** How much output may be on its way, and after how much of it that was taken the station is told. */
const WINDOW_BYTES = 512 * 1024;
const TELL_BYTES = WINDOW_BYTES / 4;

type Given<Type extends string> = Omit<Extract<ProcessClientMessage, { type: Type }>, "type" | "windowBytes">;
export type StartProcess = Given<"start">;
export type AttachProcess = Omit<Given<"attach">, "ref">;
interface Where {
  sandbox: string;
  /** Ends the opening; the process has its own life then. */
  signal?: AbortSignal;
  /** Another silence after which the station is asked for a sign of life, for tests. */
  silenceMs?: number;
}

/** One process in a sandbox, at the other end of a connection. Its methods promise what those of a `Process` do. */
export interface RemoteProcess {
  readonly ref: string;
  readonly pid: number;
  /** Its command as it may be shown, where values of secrets were in it. */
  readonly shownArgv?: readonly string[];
  /** One consumer; a slow one slows the process down. Throws `superseded` when another reader took it over. */
  readonly output: AsyncIterable<OutputFrame>;
  /**
   * Resolves once it ended and its output was consumed or discarded. Never rejects: `lost` where the connection broke
   * and the process cannot be had again.
   */
  readonly ended: Promise<Ended>;
  discardOutput(): void;
  write(data: Uint8Array): Promise<void>;
  closeStdin(): Promise<void>;
  resize(size: { cols: number; rows: number }): Promise<void>;
  signal(name: string, options?: { scope?: "tree" | "leader" }): Promise<void>;
  kill(): Promise<void>;
  /** Stops listening; the process goes on. */
  detach(): void;
}

/**
 * Starts a process. It ends with this connection unless `detachGraceMs` or `keepLastOutput` lets it go on; then a
 * connection that breaks off is made again, from where the output was, until the grace is over.
 */
export function openProcess(to: Connection, where: Where, start: StartProcess): Promise<RemoteProcess> {
  const resumes = (start.detachGraceMs ?? 0) > 0 || start.keepLastOutput === true;
  const { detachGraceMs } = start;
  return connectProcess(to, { ...where, first: { type: "start", ...start }, resumes, again: { detachGraceMs } });
}

/** Takes the output of a process over, from the first byte that is kept or these offsets. */
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
      await input.sent();
      await requests.ask({ type: "closeStdin" });
    },
    async resize(size) {
      await requests.ask({ type: "resize", ...size });
    },
    async signal(name, options = {}) {
      await requests.ask({ type: "signal", signal: name, ...options });
    },
    async kill() {
      // One that has ended may have left others behind, and its connection is gone with it.
      if ((await requests.ask({ type: "kill" })) === "end") await killRest(to, { sandbox: opening.sandbox, ref });
    },
    detach: () => state.detach(),
  };
}

/** What is left of a tree whose leader has ended. One that is forgotten has nothing left. */
async function killRest(to: Connection, { sandbox, ref }: { sandbox: string; ref: string }): Promise<void> {
  await call(to, "processes.kill", { params: { sandbox, process: ref } }).catch((error: unknown) => {
    const isGone = error instanceof CaissonError && ["not_found", "gone", "lost"].includes(error.code);
    if (!isGone) throw error;
  });
}

/** Until the process has ended, or cannot be had again. */
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
  /** Of the socket, or of one that gives no sign of life. */
  closed: StreamSocket["closed"];
}

/**
 * Resolves when the station says that it has the process. The connection is watched for silence: a network that is gone
 * closes nothing.
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
  /** What a connection says that was given up is said again by the next one. */
  const isHeard = () => {
    silence?.heard();
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
  // One that is connected closes later, too.
  failed.catch(() => {});
  try {
    const begun = await whileAlive(to, () => Promise.race([started.promise, failed]));
    // Before it has a process, the station hears nothing that is said here; a second connection costs nothing then.
    if (!resumes) watch();
    return { socket, started: begun, closed };
  } catch (error) {
    socket.abandon();
    throw error;
  }
}

type ProcessState = ReturnType<typeof createProcessState>;

/** What outlives a connection. */
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
  const output = createTakenQueue<OutputFrame>(({ data }) => {
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
    const gone = error ?? new CaissonError("gone", "the process has ended");
    input.fail(gone);
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
      // What is counted is counted for each connection.
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
      else if (message.type === "taken") input.taken(message.bytes);
      else if (message.type === "stdinClosed") input.fail(new CaissonError(message.problem.code, message.problem.detail));
      else if (message.type === "answered") requests.answered(message.request, message.problem);
    },
    /** The connection ended for good. */
    lost: (error: CaissonError | null) => finish(lostOutcome(), error ?? new CaissonError("lost", "the connection to the process ended")),
    detach() {
      socket?.send({ type: "detach" });
      finish(lostOutcome());
      socket?.close();
    },
  };
}
