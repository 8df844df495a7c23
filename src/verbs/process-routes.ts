import { z } from "zod";
import { auditedCommand, ExecCommand, ExecEvent, ExecResult, Output } from "../contract/api/exec.ts";
import { NameOrId } from "../contract/api/name-or-id.ts";
import { ProcessRef } from "../contract/ids.ts";
import { Ended } from "../contract/outcome.ts";
import type { Route } from "./route.ts";
import type { Path } from "./verb.ts";

/** The most input for a process in one request. */
const INPUT_BYTES_MAX = 1024 * 1024;

const params = { sandbox: NameOrId, process: ProcessRef };
const TerminalSize = z.strictObject({ cols: z.int().min(1).max(65_535), rows: z.int().min(1).max(65_535) });

/** A process that outlives its request and needs no connected client. */
const StartProcess = ExecCommand.omit({ input: true }).extend({
  /**
   * The process name. If a process with this name exists, the call returns it and starts nothing. Default: a generated
   * name.
   */
  ref: ProcessRef.optional(),
  /** `pipe`: the process reads the input sent to it. Default `closed`. A terminal always has a pipe. */
  stdin: z.enum(["closed", "pipe"]).optional(),
  pty: TerminalSize.optional(),
  /**
   * Keeps the last megabyte of each stream, so the process never waits for a reader. If false, nothing is dropped, and
   * the process blocks while no client reads its output.
   */
  keepLastOutput: z.boolean().default(true),
});

const ProcessEntry = z.object({
  /** Null for a process that another process inside started. */
  ref: z.string().nullable(),
  pid: z.int(),
  parentPid: z.int(),
  state: z.enum(["running", "ended"]),
  command: z.string(),
  uid: z.int(),
  /** The start time, in milliseconds since the sandbox started. */
  startedMs: z.number(),
  memoryBytes: z.number(),
  cpuMs: z.number(),
  keepsLastOutput: z.boolean(),
});
export const ProcessList = z.object({ processes: z.array(ProcessEntry) });

const KeptOutput = Output.extend({
  /** The position in the stream where this output begins. Earlier output was dropped. */
  offset: z.int().nonnegative(),
});
export const ProcessOutput = z.object({
  /** Null while it runs. */
  ended: Ended.nullable(),
  stdout: KeptOutput,
  stderr: KeptOutput,
});

export const processRoutes = {
  "sandboxes.exec": {
    path: "POST /v1/sandboxes/{sandbox}/exec",
    summary: "Run a command in a sandbox: its whole output as JSON, or events while it runs. It ends if the caller disconnects.",
    scope: "run",
    body: ExecCommand,
    audited: auditedCommand,
    answer: { json: ExecResult, events: ExecEvent },
  },
  "processes.list": {
    path: "GET /v1/sandboxes/{sandbox}/processes",
    summary: "List the processes of a sandbox.",
    scope: "read",
    params: { sandbox: NameOrId },
    answer: { json: ProcessList },
  },
  "processes.start": {
    path: "POST /v1/sandboxes/{sandbox}/processes",
    summary: "Start a command that outlives the request.",
    scope: "run",
    params: { sandbox: NameOrId },
    body: StartProcess,
    audited: auditedCommand,
    answer: { status: 201, json: z.object({ ref: ProcessRef, pid: z.int() }) },
  },
  "processes.output": {
    path: "GET /v1/sandboxes/{sandbox}/processes/{process}/output",
    summary:
      "Read the stored output of a process as JSON, or as events from these offsets on, with further output and how it ended. Only the latest caller receives events.",
    scope: "run",
    params,
    query: z.strictObject({
      stdoutOffset: z.int().min(0).optional(),
      stderrOffset: z.int().min(0).optional(),
      /** If false, the events end with the output written so far. */
      follow: z.boolean().optional(),
    }),
    answer: { json: ProcessOutput, events: ExecEvent },
  },
  "processes.input": {
    path: "POST /v1/sandboxes/{sandbox}/processes/{process}/input",
    summary: "Send input to a process. Answers when the process has accepted it.",
    scope: "run",
    params,
    body: "bytes",
    bodyBytesMax: INPUT_BYTES_MAX,
    answer: {},
  },
  "processes.closeInput": {
    path: "POST /v1/sandboxes/{sandbox}/processes/{process}/close-input",
    summary: "Close the input of a process.",
    scope: "run",
    params,
    answer: {},
  },
  "processes.resize": {
    path: "POST /v1/sandboxes/{sandbox}/processes/{process}/resize",
    summary: "Change the size of a process's terminal.",
    scope: "run",
    params,
    body: TerminalSize,
    answer: {},
  },
  "processes.signal": {
    path: "POST /v1/sandboxes/{sandbox}/processes/{process}/signal",
    summary: "Send a signal to a process and its descendants, or with scope `leader` to the process alone.",
    scope: "run",
    params,
    body: z.strictObject({ signal: z.string().regex(/^SIG[A-Z0-9+]{1,12}$/), scope: z.enum(["tree", "leader"]).default("tree") }),
    answer: {},
  },
  "processes.kill": {
    path: "POST /v1/sandboxes/{sandbox}/processes/{process}/kill",
    summary: "Kill a process and its descendants. Answers when none is alive.",
    scope: "run",
    params,
    answer: {},
  },
  "processes.forget": {
    path: "DELETE /v1/sandboxes/{sandbox}/processes/{process}",
    summary: "Forget a process that has ended, with its stored output.",
    scope: "run",
    params,
    answer: {},
  },
} as const satisfies Record<string, Route & { path: Path }>;
