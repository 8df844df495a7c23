import { setTimeout as delay } from "node:timers/promises";
import { CaissonError } from "../../contract/error/error.ts";
import { foundOrNull } from "../../contract/error/found-or-null.ts";
import type { Ended } from "../../contract/outcome.ts";
import { ignore } from "../../lib/failures.ts";
import type { Process, Sandbox } from "../../sandbox/sandbox.ts";
import type { ToolContext, ToolResult } from "../tool.ts";
import { BASH_CHARACTERS_MAX, BASH_OUTPUT_BYTES_MAX, cutMiddle } from "./limits.ts";

const WATCH_MS = 150;
/** Bytes that are read from each end of a long file for the model. */
const EDGE_BYTES = 128 * 1024;
/** Timeout for reading a command's output, even after its call was interrupted. */
const OUTPUT_READ_MS = 10_000;
/** A page, which is the smallest write to a file system. */
const PROBE_BYTES = 4096;

// biome-ignore lint/suspicious/noTemplateCurlyInString: the shell's own.
const OPEN_FILE = '[ -d "${1%/*}" ] || mkdir -p "${1%/*}"; exec >"$1" 2>&1';
/** The unit of `ulimit -f` in a shell called sh. */
const LIMIT_BLOCK_BYTES = 512;
/**
 * Limits the output of an unwatched command, even if this process has died. The output passes through `cat`, which runs
 * with a file size limit. When the limit ends `cat`, the broken pipe ends the command. `cat` is reparented, so the
 * command has no children except those that it started.
 */
const OPEN_BOUNDED_FILE = `[ -d "\${1%/*}" ] || mkdir -p "\${1%/*}"; : >"$1"
if mkfifo "$1.pipe"; then (ulimit -f ${BASH_OUTPUT_BYTES_MAX / LIMIT_BLOCK_BYTES}; cat <"$1.pipe" >"$1" &); exec >"$1.pipe" 2>&1; rm "$1.pipe"; else exec >"$1" 2>&1; fi`;
const BECOME_SHELL = 'if [ -x /bin/bash ]; then exec /bin/bash -c "$2"; fi; exec /bin/sh -c "$2"';
const BECOME_PROGRAM = 'shift; exec "$@"';

export interface Command {
  /** A program and its arguments, or a line for the shell: bash if the template has it. */
  argv: readonly string[] | { shell: string };
  cwd: string;
  env?: Readonly<Record<string, string>>;
  timeoutMs?: number;
  /** The command continues after the call, and no process watches how much it writes. */
  unwatched?: boolean;
}

/**
 * The output folder in the sandbox's own temporary file system. Each run has its own, since sub-runs share the sandbox
 * but number their calls separately.
 */
export const outputFolder = (context: Pick<ToolContext, "ref">) => `/tmp/caisson-${context.ref().replace(/:.*$/, "")}`;
export const outputFile = (context: Pick<ToolContext, "ref">, call: string) => `${outputFolder(context)}/${call}.txt`;

/**
 * Starts a command that writes straight to a file inside the sandbox, so its output is complete even if this process
 * dies: after a crash the same ref finds the same process and file. Standard output and error keep their order.
 */
export async function startCommand(command: Command, context: ToolContext): Promise<Process> {
  const file = outputFile(context, context.call);
  const open = command.unwatched ? OPEN_BOUNDED_FILE : OPEN_FILE;
  const process = await context.sandbox.spawn({
    // The shell only opens the file and becomes the command. Its tests are builtins, so a call costs one shell and no
    // extra round trip.
    argv:
      "shell" in command.argv
        ? ["/bin/sh", "-c", `${open}; ${BECOME_SHELL}`, "sh", file, command.argv.shell]
        : ["/bin/sh", "-c", `${open}; ${BECOME_PROGRAM}`, "sh", file, ...command.argv],
    ref: context.ref(),
    cwd: command.cwd,
    ...(command.env ? { env: command.env } : {}),
    ...(command.timeoutMs === undefined ? {} : { timeoutMs: command.timeoutMs }),
  });
  process.discardOutput();
  return process;
}

/** Runs a command until it ends, and describes the result for the model. */
export async function runForModel(command: Command, context: ToolContext): Promise<ToolResult> {
  const process = await startCommand(command, context);
  const file = outputFile(context, context.call);
  const kill = () => void ignore(process.kill(), "it has ended already, or ends with the sandbox");
  context.signal.addEventListener("abort", kill, { once: true });
  if (context.signal.aborted) kill();
  const watching = new AbortController();
  const watcher = watchOutput(context, { file, kill, signal: watching.signal });
  const ended = await process.ended;
  watching.abort();
  await watcher;
  context.signal.removeEventListener("abort", kill);
  if (ended.kind === "lost") throw new CaissonError("lost", "the sandbox died while the command ran");
  return await result(context, file, ended);
}

/** Streams the file as it grows, and ends a command whose output exceeds the limit. */
async function watchOutput(context: ToolContext, options: { file: string; kill: () => void; signal: AbortSignal }): Promise<void> {
  const { file, signal } = options;
  let seen = 0;
  for (;;) {
    await ignore(delay(WATCH_MS, undefined, { signal }), "the signal is checked next");
    if (signal.aborted) return;
    try {
      const { sizeBytes } = await context.sandbox.stat(file, { signal });
      if (sizeBytes > BASH_OUTPUT_BYTES_MAX) {
        options.kill();
        return;
      }
      if (sizeBytes === seen) continue;
      const from = Math.max(seen, sizeBytes - EDGE_BYTES);
      context.onOutput((await readPart(context.sandbox, file, { offset: from, length: sizeBytes - from, signal })).toString("utf8"));
      seen = sizeBytes;
    } catch (error) {
      // Watching is optional: the result is read after the command ends.
      if (!(error instanceof CaissonError)) throw error;
      return;
    }
  }
}

async function result(context: ToolContext, file: string, ended: Ended): Promise<ToolResult> {
  const { text, sizeBytes } = await outputText(context.sandbox, file);
  const isFine = ended.kind === "exited" && ended.exitCode === 0 && text !== "";
  const output = `${text === "" ? "(no output)" : text}${isFine ? "" : await outputShortage(context, file)}`;
  const details = { ended: ended.kind, file, outputBytes: sizeBytes, ...(ended.kind === "exited" ? { exitCode: ended.exitCode } : {}) };
  switch (ended.kind) {
    case "exited":
      if (ended.exitCode === 0) return { outcome: "ok", text: output, details };
      return { outcome: "error", text: `${output}\n\nExit code ${ended.exitCode}.`, details };
    case "signaled":
      return { outcome: "error", text: `${output}\n\nEnded by ${ended.signal}.`, details };
    case "timedOut":
      return { outcome: "error", text: `${output}\n\nTimed out: the command and everything it started were ended.`, details };
    case "killed": {
      if (sizeBytes > BASH_OUTPUT_BYTES_MAX)
        return { outcome: "error", text: `${output}\n\nEnded: the output exceeds ${BASH_OUTPUT_BYTES_MAX} bytes.`, details };
      if (ended.why === "disk")
        return {
          outcome: "error",
          text: `${output}\n\nEnded: the disk is nearly full. Remove files that you do not need before you continue.`,
          details,
        };
      if (ended.why === "memory") return { outcome: "error", text: `${output}\n\nEnded: out of memory.`, details };
      return { outcome: "interrupted", text: `${output}\n\nInterrupted.`, details };
    }
    case "lost":
      return { outcome: "lost", text: output, details };
  }
}

/**
 * Returns a note for the model if the file system is full, because output is then lost silently. Empty if there is
 * room.
 */
export async function outputShortage(context: Pick<ToolContext, "sandbox">, file: string): Promise<string> {
  const signal = AbortSignal.timeout(OUTPUT_READ_MS);
  const probe = `${file}.room`;
  try {
    await context.sandbox.writeFile(probe, Buffer.alloc(PROBE_BYTES), { parents: true, signal });
    await context.sandbox.remove(probe, { signal });
    return "";
  } catch (error) {
    if (!(error instanceof CaissonError) || error.code !== "no_space") return "";
    return "\n\n[/tmp in the sandbox is full, so output was lost. Remove files there that you do not need, or write output elsewhere: command >/workspace/output.txt 2>&1]";
  }
}

/** Returns what the model sees of an output file: all of it, or its two ends. */
export async function outputText(sandbox: Sandbox, file: string): Promise<{ text: string; sizeBytes: number }> {
  const signal = AbortSignal.timeout(OUTPUT_READ_MS);
  // One byte beyond the limit shows whether there is more, so most output needs only one read.
  const begin = (await foundOrNull(readPart(sandbox, file, { offset: 0, length: 2 * EDGE_BYTES + 1, signal }))) ?? Buffer.alloc(0);
  if (begin.length <= 2 * EDGE_BYTES) {
    const whole = begin.toString("utf8").trimEnd();
    return { text: cutMiddle(whole, { charactersMax: BASH_CHARACTERS_MAX, wholeAt: file }).text, sizeBytes: begin.length };
  }
  const { sizeBytes } = await sandbox.stat(file, { signal });
  const first = begin.subarray(0, EDGE_BYTES);
  const last = await readPart(sandbox, file, { offset: sizeBytes - EDGE_BYTES, length: EDGE_BYTES, signal });
  const half = Math.floor(BASH_CHARACTERS_MAX / 2);
  const left = `[… ${sizeBytes} bytes in total; the full output is in ${file}: read it with an offset, or a column in a long line …]`;
  const ends = [first.toString("utf8").slice(0, half), last.toString("utf8").trimEnd().slice(-half)].map((end) => end.toWellFormed());
  return { text: `${ends[0]}\n\n${left}\n\n${ends[1]}`, sizeBytes };
}

async function readPart(sandbox: Sandbox, file: string, part: { offset: number; length: number; signal: AbortSignal }): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of await sandbox.readFile(file, part)) pieces.push(piece);
  return Buffer.concat(pieces);
}
