import type { SandboxEvent } from "../../contract/event.ts";
import type { Ended } from "../../contract/outcome.ts";
import { defined } from "../../lib/defined.ts";
import { showBytes, showDuration } from "../../lib/quantity.ts";
import { unreachable } from "../../lib/unreachable.ts";
import type { HeldSandbox, OutputChunk } from "../../station/sandboxes/held-sandbox.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { createNetworkNotices } from "../network/network-notices.ts";
import { line } from "../terminal/line.ts";
import { connectStdio, type StdioOutcome } from "../terminal/process-stdio.ts";
import { exitCodeOf } from "../terminal/signals.ts";
import { sandboxForCommand, unlessInterrupted } from "./command-sandbox.ts";
import { tellDroppedFiles } from "./dropped-files.ts";
import { commandFrom, startCommand, timeoutFrom } from "./start-command.ts";

/** Like a shell's for a file-size limit: 128 and SIGXFSZ. */
const OUTPUT_LIMIT_EXIT_CODE = 153;
/** Like a program's whose reader went away: 128 and SIGPIPE. */
const BROKEN_PIPE_EXIT_CODE = 141;

export async function run(context: CliContext, given: ParsedArguments): Promise<number> {
  if (given.flag("detach")) return await (await import("./exec-detached.ts")).execDetached(context, given);
  return execCommand(context, given, {
    argv: given.positionals,
    tty: given.flag("tty"),
    interactive: given.flag("interactive"),
    json: given.flag("json"),
    quiet: given.flag("quiet"),
    timeoutMs: timeoutFrom(given),
  });
}

export interface CommandRequest {
  argv: readonly string[];
  tty: boolean;
  /** What is typed is passed on, even without a terminal inside. */
  interactive: boolean;
  json: boolean;
  /** Nothing of ours on stderr but errors. */
  quiet: boolean;
  timeoutMs: number | undefined;
}

/** One command in a sandbox, connected to our own standard streams. Gives our exit code. */
export async function execCommand(context: CliContext, given: ParsedArguments, request: CommandRequest): Promise<number> {
  const print = (event: SandboxEvent) => context.stdout.printJson(event);
  const events = request.json ? takeEvents(context, print) : null;
  const commandEvents = request.json ? await import("./command-events.ts") : null;
  const isSilent = request.json || request.quiet;
  const command = { ...commandFrom(context, given), argv: request.argv, ...defined({ timeoutMs: request.timeoutMs }) };
  const session = await sandboxForCommand(context, given, { warns: !isSilent, timeoutMs: request.timeoutMs });
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
    if (!isSilent && session.drops && outcome.kind === "ended") await tellDroppedFiles(context, given, session.sandbox);
    const limits = session.sandbox.info.limits;
    return await exitCode(context, outcome, { timeoutMs: request.timeoutMs ?? limits.wallClockMs, memoryBytes: limits.memoryBytes });
  } finally {
    await notices?.end();
    await session.end();
  }
}

/**
 * Of one sandbox, as soon as it is known which that is: a probe, and what is swept meanwhile, have events, too. Output
 * and end are printed as they are taken, so that a slow reader of ours slows the command down.
 */
function takeEvents(context: CliContext, print: (event: SandboxEvent) => unknown): { showOf(id: string): void } {
  let shown: string | null = null;
  const before: SandboxEvent[] = [];
  const show = (event: SandboxEvent) => {
    if (event.data.sandbox === shown && event.type !== "command.output" && event.type !== "command.ended") void print(event);
  };
  context.onEvent((event) => (shown === null ? void before.push(event) : show(event)));
  return {
    showOf(id) {
      shown = id;
      for (const event of before.splice(0)) show(event);
    },
  };
}

/**
 * Closed at a terminal: a program that reads its input to the end would wait for somebody who does not know that they
 * are to type.
 */
function stdinOf(context: CliContext, { tty, interactive }: Pick<CommandRequest, "tty" | "interactive">): "pipe" | "closed" {
  return context.stdin.isTTY && !tty && !interactive ? "closed" : "pipe";
}

/** Many programs say little about why they could not connect. */
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
        await say(`${times(ended.memoryKills)} was ended for passing the memory limit${memory}`);
      return ended.exitCode;
    case "signaled":
      return exitCodeOf(ended.signal);
    case "timedOut":
      await say(`ended: it ran longer than ${showDuration(limits.timeoutMs)}`);
      return 124;
    case "killed":
      return killedExitCode(ended.why, say, memory);
    case "lost":
      await say("the sandbox was lost; nobody knows how far the command came");
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
      await say(`ended: out of memory, it passed the limit${memory}`);
      return 137;
    case "output":
      await say("ended: it wrote more than --output-max allows");
      return OUTPUT_LIMIT_EXIT_CODE;
    case "disk":
      await say("ended: the machine's disk is nearly full; remove files, or give sandboxes a disk of their own with --disk");
      return 137;
    case "cancelled":
      await say("ended: somebody else cancelled it");
      return 130;
    default:
      return unreachable(why);
  }
}

function times(count: number): string {
  return count === 1 ? "a process" : `one of ${count} processes`;
}
