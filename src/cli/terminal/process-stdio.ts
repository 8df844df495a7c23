import { CaissonError } from "../../contract/error/error.ts";
import type { Ended } from "../../contract/outcome.ts";
import { ignore } from "../../lib/failures.ts";
import type { OutputChunk, Process } from "../../verbs/held-sandbox.ts";
import type { CliContext } from "../context.ts";

/** How long a command may take to end after we passed on SIGINT, SIGTERM or SIGHUP. */
const GRACE_MS = 3_000;

export type StdioOutcome =
  | { kind: "ended"; ended: Ended }
  /** A signal interrupted us, and the command did not end in time. */
  | { kind: "interrupted"; signal: NodeJS.Signals }
  /** The reader of our output disconnected. */
  | { kind: "brokenPipe" };

interface Connection {
  context: CliContext;
  process: Process;
  tty: boolean;
  /** The process's stdin. If it is closed, input typed in the meantime stays for the next reader of the terminal. */
  stdin: "pipe" | "closed";
  /** Receives the output instead of our stdout and stderr. */
  show?: (chunk: OutputChunk) => Promise<void>;
}

/**
 * Connects a process to our standard streams until it ends. Then the connection ends, even if stdin is still open and
 * silent. The terminal is restored when this returns.
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

/**
 * Passes the signal on, so that the program can clean up. After a timeout or a second signal, kills the whole process
 * tree.
 */
async function endByItself(
  connection: Connection,
  interrupted: { kind: "interrupted"; signal: NodeJS.Signals },
  ended: Promise<Ended>,
): Promise<StdioOutcome> {
  const { context, process } = connection;
  const tooLate = Promise.withResolvers<null>();
  const timer = setTimeout(() => tooLate.resolve(null), GRACE_MS);
  try {
    // Not awaited, because a guest that does not answer must not use up the grace period.
    void ignore(process.signal(interrupted.signal), "the process ended, or is killed after the grace period");
    const value = await Promise.race([ended, tooLate.promise, context.interruption.second.then(() => null)]);
    if (value !== null) return { kind: "ended", ended: value };
    await kill(process);
    return interrupted;
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Kills the process within the grace period, or gives up: the creator of this command's sandbox kills it next, from the
 * host.
 */
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

/** Writes the output unchanged, to the stream that the process used. */
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
      // The process ended or our stdin cannot be read; either way there is nothing more to pass on.
      if (error instanceof CaissonError && error.code !== "gone" && error.code !== "lost") throw error;
    }
    if (!stopped) await process.closeStdin().catch(ignoreEnded);
  };
  void ignore(copy(), "reported by the process's own end");
  return {
    stop: () => {
      stopped = true;
      stdin.destroy();
    },
  };
}

/**
 * Switches the terminal to raw mode, so that every key, including Ctrl-C, goes inside. Also passes on the size now and
 * whenever it changes.
 */
function takeTerminal(context: CliContext, process: Process): { restore: () => void } {
  const { stdin, stdout } = context;
  const resize = () => void ignore(process.resize(stdout.size()), "the process has ended");
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
