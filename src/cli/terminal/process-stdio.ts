import { CaissonError } from "../../contract/error.ts";
import type { Ended } from "../../contract/outcome.ts";
import type { OutputChunk, Process } from "../../station/sandboxes/held-sandbox.ts";
import type { CliContext } from "../context.ts";

/** How long a command that was sent our SIGINT, SIGTERM or SIGHUP may take to end by itself. */
const GRACE_MS = 3_000;

export type StdioOutcome =
  | { kind: "ended"; ended: Ended }
  /** We were told to end, and the command did not do so by itself in time. */
  | { kind: "interrupted"; signal: NodeJS.Signals }
  /** Nobody reads our output any more. */
  | { kind: "brokenPipe" };

interface Connection {
  context: CliContext;
  process: Process;
  tty: boolean;
  /**
   * Of the process. One that is closed takes nothing of ours: what is typed meanwhile is for whoever reads the terminal
   * next.
   */
  stdin: "pipe" | "closed";
  /** Takes the output in place of our stdout and stderr. */
  show?: (chunk: OutputChunk) => Promise<void>;
}

/**
 * Connects a process to our standard streams until it ends. The end of the process is the end of the connection: an
 * open stdin that nobody writes to holds nothing up. The terminal is as it was when this returns.
 */
export async function connectStdio(connection: Connection): Promise<StdioOutcome> {
  const { context, process } = connection;
  const terminal = connection.tty ? takeTerminal(context, process) : null;
  const input = connection.stdin === "pipe" ? forwardStdin(context, process) : null;
  try {
    const ended = pumpOutput(connection).then((): Promise<Ended> => process.ended);
    const broken = Promise.race([context.stdout.broken, context.stderr.broken]);
    const first = await Promise.race([
      ended.then((value) => ({ kind: "ended", ended: value }) as const),
      broken.then(() => ({ kind: "brokenPipe" }) as const),
      context.interruption.first.then((signal) => ({ kind: "interrupted", signal }) as const),
    ]);
    if (first.kind === "ended") return first;
    if (first.kind === "brokenPipe") {
      await kill(process);
      return first;
    }
    return await endByItself(connection, first, ended);
  } finally {
    input?.stop();
    terminal?.restore();
  }
}

/** Passes the signal on, so that a program can tidy up; then, or when the user asks again, ends the whole tree. */
async function endByItself(
  connection: Connection,
  interrupted: { kind: "interrupted"; signal: NodeJS.Signals },
  ended: Promise<Ended>,
): Promise<StdioOutcome> {
  const { context, process } = connection;
  const tooLate = Promise.withResolvers<null>();
  const timer = setTimeout(() => tooLate.resolve(null), GRACE_MS);
  try {
    // Not waited for: a guest that does not answer must not take the grace for itself.
    process.signal(interrupted.signal).catch(() => {});
    const value = await Promise.race([ended, tooLate.promise, context.interruption.second.then(() => null)]);
    if (value !== null) return { kind: "ended", ended: value };
    await kill(process);
    return interrupted;
  } finally {
    clearTimeout(timer);
  }
}

/** Within the grace, or not at all: whoever made the sandbox for this command ends it next, by the host's own means. */
async function kill(process: Process): Promise<void> {
  const tooLate = Promise.withResolvers<void>();
  const timer = setTimeout(tooLate.resolve, GRACE_MS);
  try {
    await Promise.race([process.kill().catch(ignoreEnded), tooLate.promise]);
  } finally {
    clearTimeout(timer);
  }
}

async function pumpOutput(connection: Connection): Promise<void> {
  const { context, process, show } = connection;
  for await (const chunk of process.output) {
    if (show !== undefined) await show(chunk);
    else await writeOutput(context, chunk);
  }
}

/** As the process wrote it, to the stream that it wrote to. */
export async function writeOutput({ stdout, stderr }: Pick<CliContext, "stdout" | "stderr">, chunk: OutputChunk): Promise<void> {
  await (chunk.stream === "stdout" ? stdout : stderr).writeRaw(chunk.data);
}

/** Copies our stdin into the process, no faster than the process reads it. */
function forwardStdin(context: CliContext, process: Process): { stop: () => void } {
  const { stdin } = context;
  let stopped = false;
  const copy = async () => {
    try {
      for await (const chunk of stdin) {
        if (stopped) return;
        await process.write(chunk);
      }
    } catch (error) {
      // The process ended, or our stdin cannot be read: either way there is nothing more to pass on.
      if (error instanceof CaissonError && error.code !== "gone" && error.code !== "lost") throw error;
    }
    if (!stopped) await process.closeStdin().catch(ignoreEnded);
  };
  void copy().catch(() => {});
  return {
    stop: () => {
      stopped = true;
      stdin.destroy();
    },
  };
}

/** Raw mode, so that every key (Ctrl-C too) goes inside; and the size, now and whenever it changes. */
function takeTerminal(context: CliContext, process: Process): { restore: () => void } {
  const { stdin, stdout } = context;
  const resize = () => void process.resize(stdout.size()).catch(() => {});
  const restore = () => {
    stopResizing();
    if (stdin.isTTY) stdin.setRawMode(false);
  };
  const stopResizing = stdout.onResize(resize);
  if (stdin.isTTY) stdin.setRawMode(true);
  return { restore };
}

function ignoreEnded(error: unknown): void {
  if (
    error instanceof CaissonError &&
    (error.code === "gone" || error.code === "lost" || error.code === "not_found" || error.code === "timeout")
  )
    return;
  throw error;
}
