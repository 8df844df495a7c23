import { z } from "zod";
import { ProcessRef } from "../ids.ts";
import { Ended } from "../outcome.ts";
import { auditedCommand, ExecCommand, ExecEvent, Output } from "./exec.ts";
import { NameOrId } from "./name-or-id.ts";
import type { Route } from "./route.ts";

/** How much one request may give a process to read. */
const INPUT_BYTES_MAX = 1024 * 1024;

const params = { sandbox: NameOrId, process: ProcessRef };
const TerminalSize = z.strictObject({ cols: z.int().min(1).max(65_535), rows: z.int().min(1).max(65_535) });

/** A process that outlives its request: nobody has to listen to it. */
const StartProcess = ExecCommand.omit({ input: true }).extend({
  /** What it is called; one that has this name already is answered with, not started again. Absent: one is made. */
  ref: ProcessRef.optional(),
  /** `pipe`: it reads what is sent to it; default `closed`. A terminal always has a pipe. */
  stdin: z.enum(["closed", "pipe"]).optional(),
  pty: TerminalSize.optional(),
  /**
   * The last megabyte of each stream is kept and the process never waits to be listened to. Without it nothing is
   * dropped, and the process waits once its output is not taken.
   */
  keepLastOutput: z.boolean().default(true),
});

const ProcessEntry = z.object({
  /** Null for one that a process started by itself. */
  ref: z.string().nullable(),
  pid: z.int(),
  parentPid: z.int(),
  state: z.enum(["running", "ended"]),
  command: z.string(),
  uid: z.int(),
  /** When it began, since the sandbox did. */
  startedMs: z.number(),
  memoryBytes: z.number(),
  cpuMs: z.number(),
  keepsLastOutput: z.boolean(),
});
export const ProcessList = z.object({ processes: z.array(ProcessEntry) });

const KeptOutput = Output.extend({
  /** Where it begins in its stream: what was before is not kept any more. */
  offset: z.int().nonnegative(),
});
export const ProcessOutput = z.object({
  /** Null while it runs. */
  ended: Ended.nullable(),
  stdout: KeptOutput,
  stderr: KeptOutput,
});

export const processRoutes = {
  "processes.list": {
    summary: "List the processes of a sandbox.",
    scope: "read",
    params: { sandbox: NameOrId },
    answer: { json: ProcessList },
  },
  "processes.start": {
    summary: "Start a command that outlives the request.",
    scope: "run",
    params: { sandbox: NameOrId },
    body: StartProcess,
    audited: auditedCommand,
    answer: { status: 201, json: z.object({ ref: ProcessRef, pid: z.int() }) },
  },
  "processes.output": {
    summary:
      "What a process wrote and is still kept, as JSON; or as events with what it goes on to write, from these offsets on, and at last how it ended. Whoever asks last is told.",
    scope: "run",
    params,
    query: z.strictObject({
      stdoutOffset: z.int().min(0).optional(),
      stderrOffset: z.int().min(0).optional(),
      /** False: the events end with what was written by now. */
      follow: z.boolean().optional(),
    }),
    answer: { json: ProcessOutput, events: ExecEvent },
  },
  "processes.input": {
    summary: "Give a process something to read. Answers when it was taken.",
    scope: "run",
    params,
    body: "bytes",
    bodyBytesMax: INPUT_BYTES_MAX,
    answer: {},
  },
  "processes.closeInput": { summary: "End what a process can read.", scope: "run", params, answer: {} },
  "processes.resize": { summary: "Change the size of a process's terminal.", scope: "run", params, body: TerminalSize, answer: {} },
  "processes.signal": {
    summary: "Send a signal to a process and all that it started, or with `leader` to itself alone.",
    scope: "run",
    params,
    body: z.strictObject({ signal: z.string().regex(/^SIG[A-Z0-9+]{1,12}$/), scope: z.enum(["tree", "leader"]).default("tree") }),
    answer: {},
  },
  "processes.kill": { summary: "Kill a process and all that it started. Answers when none lives.", scope: "run", params, answer: {} },
  "processes.forget": { summary: "Drop what a process that has ended left.", scope: "run", params, answer: {} },
} as const satisfies Record<string, Route>;
