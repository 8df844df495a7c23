import { CaissonError, errorCodes } from "../contract/error.ts";
import { defined } from "../lib/defined.ts";
import { nearest } from "../lib/nearest.ts";
import type { CommandSpec, ParsedArguments } from "./command.ts";
import { commands } from "./commands.ts";
import type { CliContext } from "./context.ts";
import { asCaissonError, failureLines } from "./failure.ts";
import { parseArguments } from "./options/arguments.ts";
import { line, lines } from "./terminal/line.ts";
import { exitCodeOf } from "./terminal/signals.ts";

/** What is needed before a command is known: enough for help and for errors. */
export interface CliStart {
  version: string;
  argv: readonly string[];
  /** Whether somebody sits at a terminal, to read and to type. */
  isInteractive: boolean;
  stdout: CliContext["stdout"];
  stderr: CliContext["stderr"];
  interruption: CliContext["interruption"];
  /** Made only for a command that runs: reads the configuration, makes the state folder. Throws `invalid`. */
  context: (choices: RuntimeChoices) => Promise<CliContext>;
}

/** What of a command line decides how runtimes are made. */
export interface RuntimeChoices {
  ociRuntime?: string;
  /** Whether anybody listens to events; making them costs. */
  events: boolean;
  /** Whether nothing is said on stderr besides errors. */
  quiet?: boolean;
  /** Absent: the station that runs, or the one that was chosen, where it is. */
  place?: "here" | "machine";
  /** The name of a station that was chosen for this command. */
  context?: string;
  /** How many sandboxes are to be kept ready. */
  ready?: number;
}

/** Runs one command line and gives its exit code. Never throws: every failure is printed with its hint. */
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

/** Of its code, unless what failed has one of its own, as a program that could not be started has. */
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
  const given = parseArguments(command, start.argv.slice(command.path.length));
  if (given.flag("help")) {
    const { commandHelp } = await import("./help.ts");
    await start.stdout.print(lines(commandHelp(command)));
    return 0;
  }
  const [context, loaded] = await Promise.all([start.context(runtimeChoices(command, given)), command.load()]);
  await using _station = context.station;
  // A station sees to its state folder itself, and once it listens.
  const sweeps = context.target.kind === "here" && !["completion", "config", "up"].includes(command.path[0] as string);
  const sweeping = sweeps ? sweepInBackground(context) : undefined;
  try {
    const running = loaded.run(context, given);
    return await (command.handlesSignals === true ? running : untilInterrupted(context, running));
  } finally {
    await sweeping;
    // Somebody reads in it, and has the terminal until they leave.
    await context.pager.close();
  }
}

/** Sandboxes that a station keeps ready. */
const READY_DEFAULT = 2;
const READY_MAX = 100;
/** How long a command whose sandboxes were taken away has to remove its own temporary folders. */
const TIDY_UP_MS = 3_000;
/** How long a command that was told to end waits for a station at most. */
const LEAVE_MS = 10_000;

async function untilInterrupted(context: CliContext, running: Promise<number>): Promise<number> {
  const interrupted = context.interruption.first.then((signal) => ({ signal }));
  const first = await Promise.race([running, interrupted]);
  if (typeof first === "number") return first;
  const tidyUp = async () => {
    await context.removeOwnSandboxes();
    await within(TIDY_UP_MS, running);
    // It may have begun another one before it noticed.
    await context.removeOwnSandboxes();
  };
  // A station that does not answer must not delay an exit.
  await Promise.race([context.target.kind === "here" ? tidyUp() : within(LEAVE_MS, tidyUp()), context.interruption.second]);
  return exitCodeOf(first.signal);
}

/** Waits for something, however it ends, and no longer than this. */
async function within(ms: number, work: Promise<unknown>): Promise<void> {
  const timeout = Promise.withResolvers<void>();
  const timer = setTimeout(timeout.resolve, ms);
  await Promise.race([work.catch(() => {}), timeout.promise]);
  clearTimeout(timer);
}

function runtimeChoices(command: CommandSpec, given: ParsedArguments): RuntimeChoices {
  const events = command.path[0] === "exec" && given.flag("json");
  const quiet = command.options.some((option) => option.name === "quiet") && given.flag("quiet");
  const ociRuntime = command.options.some((option) => option.name === "oci-runtime") ? given.option("oci-runtime") : undefined;
  const place = command.place === "here" || given.flag("no-station") ? ("here" as const) : command.place;
  const context = command.place === "here" ? undefined : given.option("context");
  const ready = command.path[0] === "up" && !given.flag("detach") ? readyFrom(given.option("ready")) : undefined;
  return { events, quiet, ...defined({ ociRuntime, place, context, ready }) };
}

function readyFrom(text: string | undefined): number {
  if (text === undefined) return READY_DEFAULT;
  if (/^[0-9]{1,4}$/.test(text) && Number(text) <= READY_MAX) return Number(text);
  throw new CaissonError("invalid", `--ready ${JSON.stringify(text)} is not a number of sandboxes`, {
    hint: `It is a number from 0 to ${READY_MAX}.`,
  });
}

async function sweepInBackground(context: CliContext): Promise<void> {
  try {
    await context.station.sandboxes.sweep();
  } catch (error) {
    await context.stderr.print(line`caisson: what an earlier command left could not be removed: ${asCaissonError(error).message}`);
  }
}

function findCommand(argv: readonly string[], group: readonly CommandSpec[]): CommandSpec {
  const [first = "", second] = argv;
  if (group.length > 0) {
    const found = group.find((command) => command.path[1] === second) ?? commandNamed(first);
    if (found !== undefined) return found;
    // Some words are a command by themselves, too.
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

/** By one word: also where other commands begin with it. */
function commandNamed(word: string): CommandSpec | undefined {
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
