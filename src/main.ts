import { isatty } from "node:tty";
import type { CliContext } from "./cli/context.ts";
import { type RuntimeChoices, runCli } from "./cli/dispatch.ts";
import { messageLines } from "./cli/terminal/line.ts";
import { createOutput, waitUntilWritten } from "./cli/terminal/output.ts";
import { watchSignals } from "./cli/terminal/signals.ts";
import { CaissonError } from "./contract/error/error.ts";
import { packageFiles, versionOf } from "./package-files.ts";

/** The command line: reads the environment, composes the program, and dispatches the command. */
const files = packageFiles(import.meta.filename);
const version = versionOf(files);
// Set by the launcher. Programs that we start must not fill our cache.
delete process.env.NODE_COMPILE_CACHE;

const argv = process.argv.slice(2);
const colours = process.env.NO_COLOR === undefined;
const stdout = createOutput({ fd: 1, terminal: isatty(1) ? process.stdout : null, colours });
const stderr = createOutput({ fd: 2, terminal: isatty(2) ? process.stderr : null, colours });
const interruption = watchSignals();
// Node would write warnings to the terminal unescaped, and their text may come from inside a sandbox.
process.removeAllListeners("warning");
process.on("warning", (warning) => {
  // Node 22 marks SQLite as experimental; users can do nothing about it.
  if (warning.name !== "ExperimentalWarning") void stderr.print(messageLines(`caisson: ${warning.message}`));
});
process.on("uncaughtException", (error) => {
  void stderr
    .print(messageLines(`caisson: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`))
    .then(() => process.exit(125));
});

/** Throws `not_found` if the folder was removed after this process entered it. */
function currentFolder(): string {
  try {
    return process.cwd();
  } catch (cause) {
    throw new CaissonError("not_found", "the current folder no longer exists", { cause, hint: "Change to an existing folder: cd ~" });
  }
}

/** Loaded only for commands that run something: help and versions need none of it. */
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
if (received !== null && !(await waitUntilWritten([stdout, stderr]))) {
  // A thread is blocked in a write that has no reader, and an orderly exit would wait for it indefinitely.
  process.removeAllListeners(received);
  process.kill(process.pid, received);
} else {
  process.exit(exitCode);
}
