import { CaissonError, errorCodes } from "../contract/error/error.ts";
import { defined } from "../lib/defined.ts";
import { ignore } from "../lib/failures.ts";
import { nearest } from "../lib/nearest.ts";
import type { CommandDefinition, ParsedArguments } from "./command.ts";
import { commands } from "./commands.ts";
import type { CliContext } from "./context.ts";
import { asCaissonError, failureLines } from "./failure.ts";
import { parseArguments } from "./options/arguments.ts";
import { line, lines } from "./terminal/line.ts";
import { exitCodeOf } from "./terminal/signals.ts";

/** The parts of the program that exist before the command is known: enough for help and errors. */
export interface CliStart {
  version: string;
  argv: readonly string[];
  /** Whether stdin and stdout are a terminal. */
  isInteractive: boolean;
  stdout: CliContext["stdout"];
  stderr: CliContext["stderr"];
  interruption: CliContext["interruption"];
  /** Reads the configuration and creates the state folder. Called only for a command that runs. Throws `invalid`. */
  context: (choices: RuntimeChoices) => Promise<CliContext>;
}

/** The parts of a command line that affect how runtimes are created. */
export interface RuntimeChoices {
  ociRuntime?: string;
  /** Whether to emit events, which has a cost. */
  events: boolean;
  /** Whether only errors go to stderr. */
  quiet?: boolean;
  /** Default: in the running or selected station. */
  place?: "here" | "machine";
  /** The name of the context selected for this command. */
  context?: string;
  /** How many sandboxes to keep ready. */
  ready?: number;
}

/** Runs one command line and resolves with its exit code. Never throws: prints every failure with its hint. */
export async function runCli(start: CliStart): Promise<number> {
  try {
    return await dispatch(start);
  } catch (error) {
    const received = start.interruption.received();
    const failure = asCaissonError(error);
    if (received !== null && (failure.code === "cancelled" || failure.code === "lost" || failure.code === "gone"))
      return exitCodeOf(received);
    await printError(start, failure);
    return exitCodeOfError(failure);
  }
}

/**
 * Returns the exit code of the error code, unless the failure contains one, such as a program that could not be
 * started.
 */
function exitCodeOfError({ code, details }: CaissonError): number {
  return typeof details?.exitCode === "number" ? details.exitCode : errorCodes[code].exitCode;
}

async function dispatch(start: CliStart): Promise<number> {
  const [first, second] = start.argv;
  if (first === undefined && start.isInteractive) return await dispatch({ ...start, argv: ["chat"] });
  if (first === undefined || first === "help" || first === "--help" || first === "-h") {
    const { overview } = await import("./help.ts");
    await start.stdout.print(lines(overview(commands, start.version)));
    return 0;
  }
  const group = commands.filter((command) => command.path.length === 2 && command.path[0] === first);
  if (group.length > 0 && (second === undefined || second === "--help" || second === "-h")) {
    const { groupHelp } = await import("./help.ts");
    if (second !== undefined) {
      await start.stdout.print(lines(groupHelp(commands, first)));
      return 0;
    }
  }
  const command = findCommand(start.argv, group);
  const args = parseArguments(command, start.argv.slice(command.path.length));
  if (args.flag("help")) {
    const { commandHelp } = await import("./help.ts");
    await start.stdout.print(lines(commandHelp(command)));
    return 0;
  }
  const [context, runCommand] = await Promise.all([start.context(runtimeChoices(command, args)), command.load()]);
  await using _station = context.station;
  // A station sweeps its own state folder once it listens.
  const sweeps = context.target.kind === "here" && !["completion", "config", "up"].includes(command.path[0] as string);
  const sweeping = sweeps ? sweepInBackground(context) : undefined;
  try {
    const running = runCommand(context, args);
    return await (command.handlesSignals === true ? running : untilInterrupted(context, running));
  } finally {
    await sweeping;
    // The user may still be reading in the pager, which has the terminal until they leave it.
    await context.pager.close();
  }
}

/** The number of sandboxes that a station keeps ready by default. */
const READY_DEFAULT = 2;
const READY_MAX = 100;
/** How long a command may take to remove its temporary folders after its sandboxes are removed. */
const TIDY_UP_MS = 3_000;
/** How long an interrupted command waits for a station. */
const LEAVE_MS = 10_000;

async function untilInterrupted(context: CliContext, running: Promise<number>): Promise<number> {
  const interrupted = context.interruption.first.then((signal) => ({ signal }));
  const first = await Promise.race([running, interrupted]);
  if (typeof first === "number") return first;
  const tidyUp = async () => {
    await context.removeOwnSandboxes();
    await within(TIDY_UP_MS, running);
    // The command may have created another sandbox before it noticed the interruption.
    await context.removeOwnSandboxes();
  };
  // A station that does not answer must not delay an exit.
  await Promise.race([context.target.kind === "here" ? tidyUp() : within(LEAVE_MS, tidyUp()), context.interruption.second]);
  return exitCodeOf(first.signal);
}

/** Waits until the work has finished or failed, but no longer than `ms`. */
async function within(ms: number, work: Promise<unknown>): Promise<void> {
  const timeout = Promise.withResolvers<void>();
  const timer = setTimeout(timeout.resolve, ms);
  await Promise.race([ignore(work, "the command has ended; this only tidies up"), timeout.promise]);
  clearTimeout(timer);
}

function runtimeChoices(command: CommandDefinition, args: ParsedArguments): RuntimeChoices {
  const events = command.path[0] === "exec" && args.flag("json");
  const quiet = command.options.some((option) => option.name === "quiet") && args.flag("quiet");
  const ociRuntime = command.options.some((option) => option.name === "oci-runtime") ? args.option("oci-runtime") : undefined;
  const place = command.place === "here" || args.flag("no-station") ? ("here" as const) : command.place;
  const context = command.place === "here" ? undefined : args.option("context");
  const ready = command.path[0] === "up" && !args.flag("detach") ? readyFrom(args.option("ready")) : undefined;
  return { events, quiet, ...defined({ ociRuntime, place, context, ready }) };
}

function readyFrom(text: string | undefined): number {
  if (text === undefined) return READY_DEFAULT;
  if (/^[0-9]{1,4}$/.test(text) && Number(text) <= READY_MAX) return Number(text);
  throw new CaissonError("invalid", `--ready ${JSON.stringify(text)} is not a valid number of sandboxes`, {
    hint: `Use a number from 0 to ${READY_MAX}.`,
  });
}

async function sweepInBackground(context: CliContext): Promise<void> {
  try {
    await context.station.sandboxes.sweep();
  } catch (error) {
    await context.stderr.print(line`caisson: could not remove what an earlier command left behind: ${asCaissonError(error).message}`);
  }
}

function findCommand(argv: readonly string[], group: readonly CommandDefinition[]): CommandDefinition {
  const [first = "", second] = argv;
  if (group.length > 0) {
    const found = group.find((command) => command.path[1] === second) ?? commandNamed(first);
    if (found !== undefined) return found;
    // Some words are both a group and a command.
    const alone = second === undefined ? undefined : commands.find(({ path }) => path.length === 1 && path[0] === first);
    if (alone !== undefined) return alone;
    const names = group.map((command) => command.path[1] as string);
    const near = second === undefined ? null : nearest(second, names);
    throw new CaissonError("invalid", second === undefined ? `${first}: no command was given` : `unknown command "${first} ${second}"`, {
      hint: near === null ? `Choose one of: ${names.join(", ")}.` : `Did you mean "caisson ${first} ${near}"?`,
    });
  }
  const found = commandNamed(first);
  if (found !== undefined) return found;
  const names = [...new Set(commands.map((command) => command.path[0] as string))];
  const near = nearest(first, names);
  throw new CaissonError("invalid", `unknown command ${JSON.stringify(first)}`, {
    hint: near === null ? `Choose one of: ${names.join(", ")}. See: caisson --help` : `Did you mean "caisson ${near}"?`,
  });
}

/** Finds a command of one word, even if the word also begins a group. */
function commandNamed(word: string): CommandDefinition | undefined {
  return commands.find((command) => command.path.length === 1 && command.path[0] === word);
}

async function printError(start: CliStart, error: CaissonError): Promise<void> {
  const separator = start.argv.indexOf("--");
  const ours = separator < 0 ? start.argv : start.argv.slice(0, separator);
  if (ours.includes("--json")) {
    await start.stdout.printJson({ error: error.toJSON() });
    return;
  }
  await start.stderr.print(failureLines(error));
}
