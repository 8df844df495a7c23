import { CaissonError, type ErrorCode } from "../../contract/error/error.ts";
import { foundOrNull } from "../../contract/error/found-or-null.ts";
import { defined } from "../../lib/defined.ts";
import type { HeldSandbox, Process, SpawnOptions } from "../../verbs/held-sandbox.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { parseBytes, parseDuration } from "../options/option-values.ts";
import { pairs } from "../options/parse-pairs.ts";

const NOT_EXECUTABLE_EXIT_CODE = 126;
const NO_SUCH_PROGRAM_EXIT_CODE = 127;

/**
 * Returns the folder and user of a command, and in an existing sandbox also its environment and output limit; a new
 * sandbox is created with those. Throws `invalid`.
 */
export function commandFrom(context: CliContext, args: ParsedArguments): Omit<SpawnOptions, "argv"> {
  const isThere = args.flag("sandbox");
  const outputMax = isThere ? args.option("output-max") : undefined;
  return {
    env: isThere ? pairs(context, args.options("env"), "env") : {},
    ...defined({
      cwd: args.option("cwd"),
      user: args.option("user"),
      outputBytesMax: outputMax === undefined ? undefined : parseBytes("output-max", outputMax),
    }),
  };
}

/** Parses --timeout. Throws `invalid`. */
export function timeoutFrom(args: ParsedArguments): number | undefined {
  const timeout = args.option("timeout");
  return timeout === undefined ? undefined : parseDuration("timeout", timeout);
}

/** Starts a command, and adds hints for the command line to the guest's errors. */
export async function startCommand(sandbox: HeldSandbox, options: SpawnOptions): Promise<Process> {
  try {
    return await sandbox.spawn(options);
  } catch (error) {
    if (!(error instanceof CaissonError)) throw error;
    const exitCode = await exitCodeOfStart(sandbox, error, options);
    const hint = error.hint ?? spawnHints[error.code];
    const details = { ...error.details, ...defined({ exitCode }) };
    throw new CaissonError(error.code, error.message, { cause: error, details, ...defined({ hint }) });
  }
}

/**
 * Returns the exit code that a shell and docker use for a missing or non-executable program; undefined for other
 * failures.
 */
async function exitCodeOfStart(sandbox: HeldSandbox, error: CaissonError, { cwd }: SpawnOptions): Promise<number | undefined> {
  if (error.details?.guest === "not_executable") return NOT_EXECUTABLE_EXIT_CODE;
  if (error.details?.guest !== "not_found") return undefined;
  // If the folder to start in is missing, the program is not to blame.
  const hasFolder = cwd === undefined || (await foundOrNull(sandbox.stat(cwd))) !== null;
  return hasFolder ? NO_SUCH_PROGRAM_EXIT_CODE : undefined;
}

const spawnHints: Partial<Record<ErrorCode, string>> = {
  not_found:
    "Programs and folders must exist inside the sandbox. Use `caisson shell` to look around, and `caisson doctor` to list what is visible.",
  denied: "Check that it is an executable program. --user root requires a sandbox created with --allow-root.",
  invalid: "Use an absolute path inside, without `..` and at most 4,095 bytes long.",
};
