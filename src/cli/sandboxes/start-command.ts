import { CaissonError, type ErrorCode } from "../../contract/error.ts";
import { defined } from "../../lib/defined.ts";
import type { HeldSandbox, Process, SpawnOptions } from "../../station/sandboxes/held-sandbox.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { parseBytes, parseDuration } from "../options/option-values.ts";
import { pairs } from "../options/pairs-asked.ts";

const NOT_EXECUTABLE_EXIT_CODE = 126;
const NO_SUCH_PROGRAM_EXIT_CODE = 127;

/**
 * Where and as whom the command runs. What a new sandbox is made with holds for its command, too; in one that is there
 * already it is asked for with the command. Throws `invalid`.
 */
export function commandFrom(context: CliContext, given: ParsedArguments): Omit<SpawnOptions, "argv"> {
  const isThere = given.flag("sandbox");
  const outputMax = isThere ? given.option("output-max") : undefined;
  return {
    env: isThere ? pairs(context, given.options("env"), "env") : {},
    ...defined({
      cwd: given.option("cwd"),
      user: given.option("user"),
      outputBytesMax: outputMax === undefined ? undefined : parseBytes("output-max", outputMax),
    }),
  };
}

/** Throws `invalid`. */
export function timeoutFrom(given: ParsedArguments): number | undefined {
  const timeout = given.option("timeout");
  return timeout === undefined ? undefined : parseDuration("timeout", timeout);
}

/**
 * The guest says what is not there; what to do about it depends on where one stands, and here that is a command line.
 */
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

/** As a shell and docker have it, for a program that is not there or is none; undefined for any other failure. */
async function exitCodeOfStart(sandbox: HeldSandbox, error: CaissonError, { cwd }: SpawnOptions): Promise<number | undefined> {
  if (error.details?.guest === "not_executable") return NOT_EXECUTABLE_EXIT_CODE;
  if (error.details?.guest !== "not_found") return undefined;
  // A folder to start in that is not there is no fault of the program's.
  const hasFolder = cwd === undefined || (await sandbox.stat(cwd).catch(() => null)) !== null;
  return hasFolder ? NO_SUCH_PROGRAM_EXIT_CODE : undefined;
}

const spawnHints: Partial<Record<ErrorCode, string>> = {
  not_found:
    "Programs and folders are looked for inside the sandbox: `caisson shell` lets you look around, `caisson doctor` lists what is visible.",
  denied: "Is it a program, and executable? --user root needs a sandbox made with --allow-root.",
  invalid: "A path inside is absolute, without `..`, and at most 4,095 bytes long.",
};
