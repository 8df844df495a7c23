import { CaissonError } from "../../contract/error/error.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { execCommand } from "./exec.ts";

/** Prefers bash, which an image may lack. */
const anyShell = "command -v bash >/dev/null 2>&1 && exec bash -i; exec sh -i";

/** The time limit of a shell, because people take longer than programs. */
const SESSION_MS = 24 * 3_600_000;

export async function runShell(context: CliContext, args: ParsedArguments): Promise<number> {
  if (!context.stdin.isTTY || !context.stdout.isTerminal) {
    throw new CaissonError("invalid", "shell: standard input or output is not a terminal", {
      hint: "For scripts: caisson exec -- sh -c '…'",
    });
  }
  return execCommand(context, args, {
    argv: ["sh", "-c", anyShell],
    tty: true,
    interactive: true,
    json: false,
    quiet: false,
    timeoutMs: SESSION_MS,
  });
}
