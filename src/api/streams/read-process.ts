import { constants } from "node:os";
import { problemOf } from "../../contract/api/problem.ts";
import { outputFrame, readStdinFrame } from "../../contract/api/stream-frames.ts";
import { closeCodes, FRAME_BYTES_MAX, INPUT_WINDOW_BYTES } from "../../contract/api/stream-paths.ts";
import { ProcessClientMessage } from "../../contract/api/streams.ts";
import { CaissonError } from "../../contract/error/error.ts";
import { ignore } from "../../lib/failures.ts";
import type { OutputChunk } from "../../verbs/held-sandbox.ts";
import { createCredit, partsWithin } from "./credit.ts";
import type { Leaving } from "./process.ts";
import type { ProcessEntry } from "./process-entry.ts";
import { parseMessage, type ServerSocket } from "./server-socket.ts";
import type { Stream } from "./stream.ts";

type ProcessRequest = Extract<ReturnType<typeof ProcessClientMessage.parse>, { type: "closeStdin" | "resize" | "signal" | "kill" }>;

interface Reading extends Stream {
  reader: number;
  from: Parameters<ProcessEntry["sentFrom"]>[0];
  windowBytes: number | undefined;
}

/** Resolves with the reason why this reader is finished with the process. */
export async function readProcess(entry: ProcessEntry, { socket, signal, from, reader, windowBytes }: Reading): Promise<Leaving> {
  const left = Promise.withResolvers<Leaving>();
  const credit = createCredit(windowBytes, signal);
  const isReader = () => entry.reader === reader && !signal.aborted;
  const leave = () => left.resolve({ why: "broken" });
  const { ref, pid, shownArgv } = entry.process;
  entry.supersede = () => {
    socket.fail(supersededError(ref));
    leave();
  };
  signal.addEventListener("abort", leave, { once: true });
  if (signal.aborted) leave();
  try {
    const retained = entry.sentFrom(from);
    void socket.send({ type: "started", ref, pid, ...(shownArgv && { shownArgv: [...shownArgv] }), stdinBytes: entry.stdinBytes });
    feed(entry, { socket, isReader, onTaken: (bytes) => credit.acknowledge(bytes), onDetach: () => left.resolve({ why: "detached" }) });
    const output = sendOutput(entry, { socket, credit, isReader, retained });
    void ignore(output, "awaited in the race below");
    return await Promise.race([output, left.promise]);
  } finally {
    signal.removeEventListener("abort", leave);
    if (entry.reader === reader) entry.supersede = null;
  }
}

async function sendOutput(
  entry: ProcessEntry,
  options: { socket: ServerSocket; credit: ReturnType<typeof createCredit>; isReader: () => boolean; retained: readonly OutputChunk[] },
): Promise<Leaving> {
  const { socket, credit, isReader } = options;
  const send = async ({ stream, offset, data }: OutputChunk) => {
    for await (const { at, part } of partsWithin(data, { credit, bytesMax: FRAME_BYTES_MAX })) {
      if (!isReader()) return;
      await socket.sendBytes(outputFrame({ stream, offset: offset + at, data: part }));
    }
  };
  for (const chunk of options.retained) await send(chunk);
  while (isReader()) {
    // Requests output only when there is room for it: the guest counts requested output as consumed.
    await credit.room();
    const chunk = await entry.next();
    if (!isReader()) break;
    if (chunk === null) {
      const ended = await entry.process.ended;
      entry.hasEnded = true;
      await socket.send({ type: "ended", ended });
      // A client that missed this message may reconnect to get it.
      await socket.close({ code: closeCodes.done });
      return { why: socket.disconnected.reason === closeCodes.done ? "ended" : "endedUnheard" };
    }
    await send(chunk);
  }
  return { why: "broken" };
}

/** Handles the client's messages. */
function feed(
  entry: ProcessEntry,
  options: { socket: ServerSocket; isReader: () => boolean; onTaken: (bytes: number) => void; onDetach: () => void },
): void {
  const { socket, isReader } = options;
  let waitingBytes = 0;
  let takenBytes = 0;
  let isClosed = false;
  const write = async (data: Uint8Array) => {
    try {
      if (!isClosed) await entry.process.write(data);
    } catch (error) {
      isClosed = true;
      void socket.send({ type: "stdinClosed", problem: problemOf(error as CaissonError) });
    }
    waitingBytes -= data.length;
    takenBytes += data.length;
    if (!isClosed) void socket.send({ type: "taken", bytes: takenBytes });
    if (waitingBytes <= INPUT_WINDOW_BYTES) socket.resume();
  };
  socket.listen({
    onBytes(frame) {
      if (!isReader()) return;
      const data = readStdinFrame(frame);
      entry.stdinBytes += data.length;
      waitingBytes += data.length;
      if (waitingBytes > INPUT_WINDOW_BYTES) socket.pause();
      entry.input = entry.input.then(() => write(data));
    },
    onMessage(raw) {
      const message = parseMessage(ProcessClientMessage, raw);
      if (!isReader()) return;
      if (message.type === "ping") return void socket.send({ type: "pong" });
      if (message.type === "taken") return options.onTaken(message.bytes);
      if (message.type === "detach") return options.onDetach();
      if (message.type === "start" || message.type === "attach") throw new CaissonError("invalid", "this socket already has its process");
      void answer(message, () => perform(message, entry), socket);
    },
  });
}

function perform(message: ProcessRequest, entry: ProcessEntry): Promise<void> {
  const { process } = entry;
  switch (message.type) {
    case "closeStdin": {
      // After all earlier input.
      const closing = entry.input.then(() => process.closeStdin());
      entry.input = ignore(closing, "its caller gets the error").then(() => {});
      return closing;
    }
    case "resize":
      return process.resize({ cols: message.cols, rows: message.rows });
    case "signal":
      return process.signal(signalOf(message.signal), message.scope === undefined ? {} : { scope: message.scope });
    case "kill":
      return process.kill();
  }
}

/** Parses a signal name. Throws `invalid`. */
function signalOf(name: string): NodeJS.Signals {
  if (Object.hasOwn(constants.signals, name)) return name as NodeJS.Signals;
  throw new CaissonError("invalid", `there is no signal ${name}`, { hint: "Use a name such as SIGTERM." });
}

/** Sends the outcome to clients that numbered their request. Others see only its effect. */
async function answer({ request }: ProcessRequest, work: () => Promise<void>, socket: ServerSocket): Promise<void> {
  let problem: ReturnType<typeof problemOf> | null = null;
  try {
    await work();
  } catch (error) {
    if (!(error instanceof CaissonError)) return socket.fail(error);
    problem = problemOf(error);
  }
  if (request !== undefined) await socket.send({ type: "answered", request, problem });
}

function supersededError(ref: string): CaissonError {
  return new CaissonError("superseded", `another reader took over process ${ref}`, { hint: "A process has one reader at a time." });
}
