import { isatty } from "node:tty";
import type { CliContext } from "./cli/context.ts";
import { type RuntimeChoices, runCli } from "./cli/dispatch.ts";
import { messageLines } from "./cli/terminal/line.ts";
import { createOutput } from "./cli/terminal/output.ts";
import { watchSignals } from "./cli/terminal/signals.ts";
import { CaissonError } from "./contract/error.ts";
import { packageFiles, versionOf } from "./package-files.ts";

/** The command line: reads the environment, composes, and hands over to the commands. */
const files = packageFiles(import.meta.filename);
const version = versionOf(files);
// The launcher's own; a program that we start must not fill our cache.
delete process.env.NODE_COMPILE_CACHE;

const argv = process.argv.slice(2);
const colours = process.env.NO_COLOR === undefined;
const stdout = createOutput({ fd: 1, terminal: isatty(1) ? process.stdout : null, colours });
const stderr = createOutput({ fd: 2, terminal: isatty(2) ? process.stderr : null, colours });
const interruption = watchSignals();
// Node would write these to the terminal as they are, and what they say may come from inside.
process.removeAllListeners("warning");
process.on("warning", (warning) => {
  // Node 22 says so of SQLite; users can do nothing about it.
  if (warning.name !== "ExperimentalWarning") void stderr.print(messageLines(`caisson: ${warning.message}`));
});
process.on("uncaughtException", (error) => {
  void stderr
    .print(messageLines(`caisson: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`))
    .then(() => process.exit(125));
});

/** Throws `not_found` where somebody has removed it meanwhile. */
function currentFolder(): string {
  try {
    return process.cwd();
  } catch (cause) {
    throw new CaissonError("not_found", "the current folder is not there any more", { cause, hint: "Change to one that is: cd ~" });
  }
}

/** Loaded only for a command that runs: help and versions need none of it. */
async function makeContext(choices: RuntimeChoices): Promise<CliContext> {
  const { composeCli } = await import("./compose/cli.ts");
  return composeCli({
    variables: process.env,
    argv,
    program: [process.execPath, ...process.execArgv, process.argv[1] ?? ""],
    version,
    packageDir: files.root,
    guestPath: files.guestPath,
    consoleDir: files.consoleDir,
    cwd: currentFolder(),
    stdin: process.stdin,
    stdout,
    stderr,
    interruption,
    choices,
  });
}

const exitCode = await runCli({ version, argv, isInteractive: isatty(0) && isatty(1), stdout, stderr, interruption, context: makeContext });
const received = interruption.received();
if (received !== null && (stdout.pending() || stderr.pending())) {
  // A thread is stuck in a write that nobody reads, and an orderly exit would wait for it for ever.
  process.removeAllListeners(received);
  process.kill(process.pid, received);
} else {
  process.exit(exitCode);
}
