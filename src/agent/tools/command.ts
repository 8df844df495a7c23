import { setTimeout as delay } from "node:timers/promises";
import { CaissonError } from "../../contract/error.ts";
import type { Ended } from "../../contract/outcome.ts";
import type { Process, Sandbox } from "../../sandbox/sandbox.ts";
import type { ToolContext, ToolResult } from "../tool.ts";
import { BASH_CHARACTERS_MAX, BASH_OUTPUT_BYTES_MAX, cutMiddle } from "./limits.ts";

const WATCH_MS = 150;
/** Parts of a long file that are read for the model: its beginning and its end. */
const EDGE_BYTES = 128 * 1024;
/** For reading what a command wrote, also after its call was interrupted. */
const OUTPUT_READ_MS = 10_000;
/** A page: what the smallest write to a file system takes. */
const PROBE_BYTES = 4096;

// biome-ignore lint/suspicious/noTemplateCurlyInString: the shell's own.
const OPEN_FILE = '[ -d "${1%/*}" ] || mkdir -p "${1%/*}"; exec >"$1" 2>&1';
/** What `ulimit -f` counts in, in a shell called sh. */
const LIMIT_BLOCK_BYTES = 512;
/**
 * For a command that nobody watches: what it writes passes through a program that may write so much and no more, and
 * ends the command by ending itself, whatever has become of us. That program is nobody's child, so that the command
 * does not meet a child it did not start.
 */
const OPEN_BOUNDED_FILE = `[ -d "\${1%/*}" ] || mkdir -p "\${1%/*}"; : >"$1"
if mkfifo "$1.pipe"; then (ulimit -f ${BASH_OUTPUT_BYTES_MAX / LIMIT_BLOCK_BYTES}; cat <"$1.pipe" >"$1" &); exec >"$1.pipe" 2>&1; rm "$1.pipe"; else exec >"$1" 2>&1; fi`;
const BECOME_SHELL = 'if [ -x /bin/bash ]; then exec /bin/bash -c "$2"; fi; exec /bin/sh -c "$2"';
const BECOME_PROGRAM = 'shift; exec "$@"';

export interface Command {
  /** A program and its arguments, or a line for the shell: bash where the template has it. */
  argv: readonly string[] | { shell: string };
  cwd: string;
  env?: Readonly<Record<string, string>>;
  timeoutMs?: number;
  /** Whether it goes on when the call is over, with nobody to look at how much it writes. */
  unwatched?: boolean;
}

/**
 * Inside, on the sandbox's own temporary file system; of this run alone, since sub-runs share the sandbox and count
 * their calls anew.
 */
export const outputFolder = (context: Pick<ToolContext, "ref">) => `/tmp/caisson-${context.ref().replace(/:.*$/, "")}`;
export const outputFile = (context: Pick<ToolContext, "ref">, call: string) => `${outputFolder(context)}/${call}.txt`;

/**
 * Starts a command that writes straight into a file inside the sandbox, so that its output is complete whatever becomes
 * of us: after a crash the same ref leads to the same process, and the file has everything it wrote. Standard output
 * and error keep their order.
 */
export async function startCommand(command: Command, context: ToolContext): Promise<Process> {
  const file = outputFile(context, context.call);
  const open = command.unwatched ? OPEN_BOUNDED_FILE : OPEN_FILE;
  const process = await context.sandbox.spawn({
    // The shell only opens the file and becomes the command; its tests are built in, so that a call costs one shell and
    // no round trip more.
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

/** Runs a command to its end and says what came out, in the words the model reads. */
export async function runForModel(command: Command, context: ToolContext): Promise<ToolResult> {
  const process = await startCommand(command, context);
  const file = outputFile(context, context.call);
  const kill = () => void process.kill().catch(() => undefined);
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

/** Shows the file as it grows, and ends a command that writes without end. */
async function watchOutput(context: ToolContext, options: { file: string; kill: () => void; signal: AbortSignal }): Promise<void> {
  const { file, signal } = options;
  let seen = 0;
  for (;;) {
    try {
      await delay(WATCH_MS, undefined, { signal });
    } catch {
      return;
    }
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
      // Watching is a courtesy: what matters is read when the command has ended.
      if (!(error instanceof CaissonError)) throw error;
      return;
    }
  }
}

async function result(context: ToolContext, file: string, ended: Ended): Promise<ToolResult> {
  const { text, sizeBytes } = await outputText(context.sandbox, file);
  const isFine = ended.kind === "exited" && ended.exitCode === 0 && text !== "";
  const said = `${text === "" ? "(no output)" : text}${isFine ? "" : await outputShortage(context, file)}`;
  const details = { ended: ended.kind, file, outputBytes: sizeBytes, ...(ended.kind === "exited" ? { exitCode: ended.exitCode } : {}) };
  switch (ended.kind) {
    case "exited":
      if (ended.exitCode === 0) return { outcome: "ok", text: said, details };
      return { outcome: "error", text: `${said}\n\nExit code ${ended.exitCode}.`, details };
    case "signaled":
      return { outcome: "error", text: `${said}\n\nEnded by ${ended.signal}.`, details };
    case "timedOut":
      return { outcome: "error", text: `${said}\n\nTimed out: it and everything it started were ended.`, details };
    case "killed": {
      if (sizeBytes > BASH_OUTPUT_BYTES_MAX)
        return { outcome: "error", text: `${said}\n\nEnded: it wrote more than ${BASH_OUTPUT_BYTES_MAX} bytes.`, details };
      if (ended.why === "disk")
        return {
          outcome: "error",
          text: `${said}\n\nEnded: the disk is nearly full. Remove what is not needed before anything else.`,
          details,
        };
      if (ended.why === "memory") return { outcome: "error", text: `${said}\n\nEnded: out of memory.`, details };
      return { outcome: "interrupted", text: `${said}\n\nInterrupted.`, details };
    }
    case "lost":
      return { outcome: "lost", text: said, details };
  }
}

/**
 * A full file system takes output without a word; then the model must hear why it sees nothing. Empty when there is
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
    return "\n\n[/tmp in the sandbox is full, so output was lost. Remove what is not needed there, or send output elsewhere: command >/workspace/output.txt 2>&1]";
  }
}

/** What the model gets to see of an output file: all of it, or its two ends. */
export async function outputText(sandbox: Sandbox, file: string): Promise<{ text: string; sizeBytes: number }> {
  const signal = AbortSignal.timeout(OUTPUT_READ_MS);
  // One byte more than is shown whole tells whether there is more; most output needs no second look.
  const begin = await readPart(sandbox, file, { offset: 0, length: 2 * EDGE_BYTES + 1, signal }).catch((error: unknown) => {
    if (error instanceof CaissonError && error.code === "not_found") return Buffer.alloc(0);
    throw error;
  });
  if (begin.length <= 2 * EDGE_BYTES) {
    const whole = begin.toString("utf8").trimEnd();
    return { text: cutMiddle(whole, { charactersMax: BASH_CHARACTERS_MAX, wholeAt: file }).text, sizeBytes: begin.length };
  }
  const { sizeBytes } = await sandbox.stat(file, { signal });
  const first = begin.subarray(0, EDGE_BYTES);
  const last = await readPart(sandbox, file, { offset: sizeBytes - EDGE_BYTES, length: EDGE_BYTES, signal });
  const half = Math.floor(BASH_CHARACTERS_MAX / 2);
  const left = `[… ${sizeBytes} bytes in all; the whole is in ${file}: read it with an offset, or a column in a long line …]`;
  const ends = [first.toString("utf8").slice(0, half), last.toString("utf8").trimEnd().slice(-half)].map((end) => end.toWellFormed());
  return { text: `${ends[0]}\n\n${left}\n\n${ends[1]}`, sizeBytes };
}

async function readPart(sandbox: Sandbox, file: string, part: { offset: number; length: number; signal: AbortSignal }): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of await sandbox.readFile(file, part)) pieces.push(piece);
  return Buffer.concat(pieces);
}
