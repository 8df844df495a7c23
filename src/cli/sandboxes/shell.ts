import { CaissonError } from "../../contract/error.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { execCommand } from "./exec.ts";

/** An image need not have bash. */
const anyShell = "command -v bash >/dev/null 2>&1 && exec bash -i; exec sh -i";

/** People think longer than programs run. */
const SESSION_MS = 24 * 3_600_000;

export async function run(context: CliContext, given: ParsedArguments): Promise<number> {
  if (!context.stdin.isTTY || !context.stdout.isTerminal) {
    throw new CaissonError("invalid", "shell: standard input or output is not a terminal", {
      hint: "For scripts: caisson exec -- sh -c '…'",
    });
  }
  return execCommand(context, given, {
    argv: ["sh", "-c", anyShell],
    tty: true,
    interactive: true,
    json: false,
    quiet: false,
    timeoutMs: SESSION_MS,
  });
}
