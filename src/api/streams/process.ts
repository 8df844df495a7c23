import { auditedCommand } from "../../contract/api/exec.ts";
import { closeCodes } from "../../contract/api/stream-paths.ts";
import { ProcessClientMessage } from "../../contract/api/streams.ts";
import { type AuditSubject, auditName } from "../../contract/audit/audit-text.ts";
import { CaissonError } from "../../contract/error/error.ts";
import { defined } from "../../lib/defined.ts";
import { ignore } from "../../lib/failures.ts";
import type { HeldSandbox, Process } from "../../verbs/held-sandbox.ts";
import { createProcessEntry, PROCESS_WINDOW_BYTES_MAX, type ProcessEntry } from "./process-entry.ts";
import { readProcess } from "./read-process.ts";
import type { ServeStream, Stream } from "./stream.ts";

type First = Extract<ReturnType<typeof ProcessClientMessage.parse>, { type: "start" | "attach" }>;

export interface ProcessStreams {
  readonly serve: ServeStream;
  /** Detaches from the processes that wait for their client. They continue. */
  close(): Promise<void>;
}

/**
 * Serves processes over WebSockets. A process whose connection breaks off waits for its client to reconnect, with the
 * output that the client may have missed.
 */
export function createProcessStreams(): ProcessStreams {
  const entries = new Map<string, ProcessEntry>();
  const drop = async (key: string, entry: ProcessEntry) => {
    if (entry.graceTimer !== null) clearTimeout(entry.graceTimer);
    entry.graceTimer = null;
    if (entries.get(key) === entry) entries.delete(key);
    entry.process.detach();
    await entry.held.release();
  };
  const end = async (key: string, entry: ProcessEntry) => {
    if (entry.hasEnded !== true) await ignore(entry.process.kill(), "the process has ended, or ends with the sandbox");
    entry.process.discardOutput();
    await drop(key, entry);
  };
  const leave = async (key: string, entry: ProcessEntry, how: Leaving) => {
    if (how.why === "ended" || how.why === "detached") return drop(key, entry);
    const { graceMs, keepsLastOutput } = entry;
    if (graceMs === null || keepsLastOutput) return drop(key, entry);
    if (how.why === "closed" || graceMs === 0) return end(key, entry);
    if (how.why === "stationEnds") return drop(key, entry);
    entry.graceTimer = setTimeout(() => void end(key, entry), graceMs);
    // The remaining messages do not need the sandbox.
    if (how.why === "endedUnheard") await entry.held.release();
  };
  const serve: ServeStream = async (stream) => {
    const { socket, station, params, signal, audit } = stream;
    const first = await socket.first(ProcessClientMessage);
    if (first.type !== "start" && first.type !== "attach") {
      throw new CaissonError("invalid", "the first message must start a process or attach to one");
    }
    await audit(...auditedFirst(first));
    const held = await station.sandboxes.hold(params.sandbox as string, { signal });
    const { key, entry, from, reader } = await open(held, { first, entries, drop });
    let how: Leaving = { why: "broken" };
    try {
      how = await readProcess(entry, { ...stream, from, reader, windowBytes: windowOf(first) });
    } finally {
      if (entry.reader === reader) await leave(key, entry, howLeft(how, stream));
    }
  };
  return {
    serve,
    async close() {
      await Promise.all([...entries].map(([key, entry]) => drop(key, entry)));
    },
  };
}

function auditedFirst(first: First): [action: string, AuditSubject] {
  const { type, ref } = first;
  return type === "attach" ? ["processes.attach", { process: auditName(ref) }] : ["processes.start", auditedCommand(first)];
}

/**
 * Why the reader left. `closed`: the client is done with the process. `endedUnheard`: the client may not know that it
 * has ended.
 */
export interface Leaving {
  why: "ended" | "endedUnheard" | "detached" | "superseded" | "closed" | "broken" | "stationEnds";
}

/**
 * If the reader only reported a broken connection, derives the reason from the socket. A client that lost its right to
 * the process counts as done with it.
 */
function howLeft(how: Leaving, { socket, isEnding }: Stream): Leaving {
  if (how.why !== "broken") return how;
  if (isEnding()) return { why: "stationEnds" };
  if (!socket.disconnected.aborted) return { why: "closed" };
  return { why: socket.disconnected.reason === closeCodes.done ? "closed" : "broken" };
}

const windowOf = ({ windowBytes }: First) => (windowBytes === undefined ? undefined : Math.min(windowBytes, PROCESS_WINDOW_BYTES_MAX));

interface Opened {
  key: string;
  entry: ProcessEntry;
  reader: number;
  /** Where the reader starts in the output that was already sent. */
  from: Parameters<ProcessEntry["sentFrom"]>[0];
}

/** Opens the process for a reader, or takes it over if it is already open. */
async function open(
  held: HeldSandbox,
  { first, entries, drop }: { first: First; entries: Map<string, ProcessEntry>; drop: (key: string, entry: ProcessEntry) => Promise<void> },
): Promise<Opened> {
  const keyOf = (ref: string) => `${held.id}/${ref}`;
  const graceMs = first.type === "start" ? (first.detachGraceMs ?? 0) : (first.detachGraceMs ?? null);
  const follows = first.type === "start" || first.follow !== false;
  const from = first.type === "attach" ? { stdoutOffset: first.stdoutOffset, stderrOffset: first.stderrOffset } : {};
  try {
    const key = first.ref === undefined ? null : keyOf(first.ref);
    const here = key === null ? undefined : entries.get(key);
    if (key !== null && here !== undefined && follows) {
      here.sentFrom(from);
      const reader = takeOver(here, graceMs);
      // The entry already holds the sandbox.
      await held.release();
      return { key, entry: here, reader, from };
    }
    if (key !== null && here !== undefined) {
      takeOver(here, null);
      await drop(key, here);
    }
    const process = await begin(held, first);
    const keepsLastOutput = first.type === "start" ? first.keepLastOutput === true : await keepsOutput(held, process);
    const entry = createProcessEntry({ process, held, keepsLastOutput, graceMs });
    if (follows) entries.set(keyOf(process.ref), entry);
    return { key: keyOf(process.ref), entry, reader: entry.reader, from };
  } catch (error) {
    await held.release();
    throw error;
  }
}

/** Makes a new reader the current one. */
function takeOver(entry: ProcessEntry, graceMs: number | null): number {
  if (entry.graceTimer !== null) clearTimeout(entry.graceTimer);
  entry.graceTimer = null;
  if (graceMs !== null) entry.graceMs = graceMs;
  entry.reader += 1;
  entry.supersede?.();
  return entry.reader;
}

function begin(held: HeldSandbox, first: First): Promise<Process> {
  if (first.type === "attach") {
    const { stdoutOffset, stderrOffset, follow } = first;
    return held.attach(first.ref, defined({ stdoutOffset, stderrOffset, follow }));
  }
  const { type: _, detachGraceMs: _grace, windowBytes: _window, ...request } = first;
  const { pty, env, ...rest } = request;
  return held.spawn({ ...defined(rest), ...(pty && { pty }), ...(env && { env }) });
}

async function keepsOutput(held: HeldSandbox, { ref }: Process): Promise<boolean> {
  return (await held.processes()).some((each) => each.ref === ref && each.keepsLastOutput);
}
