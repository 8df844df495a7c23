import { auditedCommand } from "../../contract/api/exec.ts";
import { closeCodes } from "../../contract/api/stream-paths.ts";
import { ProcessClientMessage } from "../../contract/api/streams.ts";
import { type AuditSubject, auditName } from "../../contract/audit-text.ts";
import { CaissonError } from "../../contract/error.ts";
import { defined } from "../../lib/defined.ts";
import type { HeldSandbox, Process } from "../../station/sandboxes/held-sandbox.ts";
import { createProcessEntry, PROCESS_WINDOW_BYTES_MAX, type ProcessEntry } from "./process-entry.ts";
import { readProcess } from "./read-process.ts";
import type { ServeStream, Stream } from "./stream.ts";

type First = Extract<ReturnType<typeof ProcessClientMessage.parse>, { type: "start" | "attach" }>;

export interface ProcessStreams {
  readonly serve: ServeStream;
  /** Lets go of those that wait for their client; they go on by themselves. */
  close(): Promise<void>;
}

/**
 * Processes at the other end of a WebSocket. One whose connection broke off waits for its client to come back, with
 * what that may not have got.
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
    if (entry.hasEnded !== true) await entry.process.kill().catch(() => {});
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
    // What is left to say of it needs no sandbox.
    if (how.why === "endedUnheard") await entry.held.release();
  };
  const serve: ServeStream = async (stream) => {
    const { socket, station, params, signal, audit } = stream;
    const first = await socket.first(ProcessClientMessage);
    if (first.type !== "start" && first.type !== "attach") {
      throw new CaissonError("invalid", "the first message neither starts a process nor attaches to one");
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

/** Why nobody reads any more. `closed`: the client is done with it. `endedUnheard`: it may not know yet. */
export interface Leaving {
  why: "ended" | "endedUnheard" | "detached" | "superseded" | "closed" | "broken" | "stationEnds";
}

/** What the reader did not say is seen from the socket. A client that may do this no longer is done with it. */
function howLeft(how: Leaving, { socket, isEnding }: Stream): Leaving {
  if (how.why !== "broken") return how;
  if (isEnding()) return { why: "stationEnds" };
  if (!socket.gone.aborted) return { why: "closed" };
  return { why: socket.gone.reason === closeCodes.done ? "closed" : "broken" };
}

const windowOf = ({ windowBytes }: First) => (windowBytes === undefined ? undefined : Math.min(windowBytes, PROCESS_WINDOW_BYTES_MAX));

interface Opened {
  key: string;
  entry: ProcessEntry;
  reader: number;
  /** Where the reader begins in what was sent. */
  from: Parameters<ProcessEntry["sentFrom"]>[0];
}

/** One that is here already is taken over. */
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
      // The entry holds the sandbox already.
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

/** From now on the one before has no say. */
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
  const { type: _, detachGraceMs: _grace, windowBytes: _window, ...asked } = first;
  const { pty, env, ...rest } = asked;
  return held.spawn({ ...defined(rest), ...(pty && { pty }), ...(env && { env }) });
}

async function keepsOutput(held: HeldSandbox, { ref }: Process): Promise<boolean> {
  return (await held.processes()).some((each) => each.ref === ref && each.keepsLastOutput);
}
