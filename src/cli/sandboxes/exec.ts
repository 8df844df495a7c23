import type { Ended } from "../../contract/outcome.ts";
import type { SandboxEvent } from "../../contract/sandbox/sandbox-event.ts";
import { defined } from "../../lib/defined.ts";
import { showBytes, showDuration } from "../../lib/quantity.ts";
import { unreachable } from "../../lib/unreachable.ts";
import type { HeldSandbox, OutputChunk } from "../../verbs/held-sandbox.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { createNetworkNotices } from "../network/network-notices.ts";
import { line } from "../terminal/line.ts";
import { connectStdio, type StdioOutcome } from "../terminal/process-stdio.ts";
import { exitCodeOf } from "../terminal/signals.ts";
import { sandboxForCommand, unlessInterrupted } from "./command-sandbox.ts";
import { tellDroppedFiles } from "./dropped-files.ts";
import { commandFrom, startCommand, timeoutFrom } from "./start-command.ts";

/** The exit code that a shell reports for a file-size limit: 128 and SIGXFSZ. */
const OUTPUT_LIMIT_EXIT_CODE = 153;
/** The exit code of a program whose reader disconnected: 128 and SIGPIPE. */
const BROKEN_PIPE_EXIT_CODE = 141;

export async function runExec(context: CliContext, args: ParsedArguments): Promise<number> {
  if (args.flag("detach")) return await (await import("./exec-detached.ts")).execDetached(context, args);
  return execCommand(context, args, {
    argv: args.positionals,
    tty: args.flag("tty"),
    interactive: args.flag("interactive"),
    json: args.flag("json"),
    quiet: args.flag("quiet"),
    timeoutMs: timeoutFrom(args),
  });
}

export interface CommandRequest {
  argv: readonly string[];
  tty: boolean;
  /** Passes input from a terminal to the command, even if it has no terminal inside. */
  interactive: boolean;
  json: boolean;
  /** Prints only errors and the command's output on stderr. */
  quiet: boolean;
  timeoutMs: number | undefined;
}

/** Runs a command in a sandbox, connected to our standard streams. Resolves with our exit code. */
export async function execCommand(context: CliContext, args: ParsedArguments, request: CommandRequest): Promise<number> {
  const print = (event: SandboxEvent) => context.stdout.printJson(event);
  const events = request.json ? takeEvents(context, print) : null;
  const commandEvents = request.json ? await import("./command-events.ts") : null;
  const isSilent = request.json || request.quiet;
  const command = { ...commandFrom(context, args), argv: request.argv, ...defined({ timeoutMs: request.timeoutMs }) };
  const session = await sandboxForCommand(context, args, { warns: !isSilent, timeoutMs: request.timeoutMs });
  events?.showOf(session.sandbox.id);
  const notices = isSilent ? null : tellOfNetwork(context, session.sandbox, request);
  try {
    const stdin = stdinOf(context, request);
    const starting = startCommand(session.sandbox, { ...command, stdin, ...(request.tty ? { pty: terminalSize(context) } : {}) });
    const process = await unlessInterrupted(context, starting);
    const of = { sandbox: session.sandbox.id, ref: process.ref };
    const show = commandEvents && ((chunk: OutputChunk) => print(commandEvents.outputEvent(of, chunk)));
    const outcome = await connectStdio({ context, process, stdin, tty: request.tty, ...(show && { show }) });
    if (commandEvents && outcome.kind === "ended") await print(commandEvents.endedEvent(of, outcome.ended));
    if (!isSilent && session.drops && outcome.kind === "ended") await tellDroppedFiles(context, args, session.sandbox);
    const limits = session.sandbox.info.limits;
    return await exitCode(context, outcome, { timeoutMs: request.timeoutMs ?? limits.wallClockMs, memoryBytes: limits.memoryBytes });
  } finally {
    await notices?.end();
    await session.end();
  }
}

/**
 * Prints the events of one sandbox as soon as its id is known, because probes and sweeps emit events as well. Output
 * and end are printed elsewhere, as they are read, so that a slow reader of ours slows the command down.
 */
function takeEvents(context: CliContext, print: (event: SandboxEvent) => unknown): { showOf(id: string): void } {
  let sandboxId: string | null = null;
  const before: SandboxEvent[] = [];
  const show = (event: SandboxEvent) => {
    if (event.data.sandbox === sandboxId && event.type !== "command.output" && event.type !== "command.ended") void print(event);
  };
  context.onEvent((event) => (sandboxId === null ? void before.push(event) : show(event)));
  return {
    showOf(id) {
      sandboxId = id;
      for (const event of before.splice(0)) show(event);
    },
  };
}

/**
 * Closes the input at a terminal: a program that reads it to the end would wait for a user who does not know that they
 * should type.
 */
function stdinOf(context: CliContext, { tty, interactive }: Pick<CommandRequest, "tty" | "interactive">): "pipe" | "closed" {
  return context.stdin.isTTY && !tty && !interactive ? "closed" : "pipe";
}

/** Prints network denials, because many programs do not say why they could not connect. */
function tellOfNetwork(context: CliContext, sandbox: HeldSandbox, { tty }: Pick<CommandRequest, "tty">) {
  const notices = createNetworkNotices({ print: (lines) => context.stderr.print(lines), when: tty ? "afterwards" : "atOnce" });
  const stop = sandbox.network?.subscribe(notices.take);
  return {
    async end() {
      stop?.();
      await notices.flush();
    },
  };
}

function terminalSize(context: CliContext): { cols: number; rows: number } {
  const { stdout } = context;
  return stdout.isTerminal ? stdout.size() : { cols: 80, rows: 24 };
}

async function exitCode(
  context: CliContext,
  outcome: StdioOutcome,
  limits: { timeoutMs: number; memoryBytes: number | null },
): Promise<number> {
  const say = (text: string) => context.stderr.print(line`caisson: ${text}`);
  if (outcome.kind === "interrupted") return exitCodeOf(outcome.signal);
  if (outcome.kind === "brokenPipe") return BROKEN_PIPE_EXIT_CODE;
  const { ended } = outcome;
  const memory = limits.memoryBytes === null ? "" : ` of ${showBytes(limits.memoryBytes)}`;
  switch (ended.kind) {
    case "exited":
      if (ended.memoryKills > 0 && ended.exitCode !== 0)
        await say(`${describeKills(ended.memoryKills)} for exceeding the memory limit${memory}`);
      return ended.exitCode;
    case "signaled":
      return exitCodeOf(ended.signal);
    case "timedOut":
      await say(`stopped: it ran longer than ${showDuration(limits.timeoutMs)}`);
      return 124;
    case "killed":
      return killedExitCode(ended.why, say, memory);
    case "lost":
      await say("the sandbox was lost; the command may or may not have finished");
      return 125;
    default:
      return unreachable(ended);
  }
}

async function killedExitCode(
  why: Extract<Ended, { kind: "killed" }>["why"],
  say: (text: string) => Promise<void>,
  memory: string,
): Promise<number> {
  switch (why) {
    case "memory":
      await say(`killed: it exceeded the memory limit${memory}`);
      return 137;
    case "output":
      await say("stopped: its output exceeded --output-max");
      return OUTPUT_LIMIT_EXIT_CODE;
    case "disk":
      await say("stopped: the machine's disk is nearly full; remove files, or give each sandbox its own disk with --disk");
      return 137;
    case "cancelled":
      await say("stopped: another process cancelled it");
      return 130;
    default:
      return unreachable(why);
  }
}

function describeKills(count: number): string {
  return count === 1 ? "a process was killed" : `${count} processes were killed`;
}
