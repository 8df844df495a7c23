import { CaissonError } from "../../contract/error/error.ts";
import { defined } from "../../lib/defined.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { line } from "../terminal/line.ts";
import { exitCodeOf } from "../terminal/signals.ts";
import { sandboxForCommand, unlessInterrupted } from "./command-sandbox.ts";
import { commandFrom, startCommand, timeoutFrom } from "./start-command.ts";

/**
 * `caisson exec -d`: leaves the command running in a sandbox that stays, and does not wait for it. `caisson logs` shows
 * its output. A command that cannot be started leaves no sandbox behind.
 */
export async function execDetached(context: CliContext, args: ParsedArguments): Promise<number> {
  const inVain = ["tty", "interactive"].find((name) => args.flag(name));
  if (inVain !== undefined) {
    throw new CaissonError("invalid", `exec: --detach cannot be combined with --${inVain}: a detached command has no terminal`, {
      hint: "Remove one of them. To look around in an existing sandbox, use `caisson shell --sandbox SANDBOX`.",
    });
  }
  const timeoutMs = timeoutFrom(args);
  const command = { ...commandFrom(context, args), argv: args.positionals, ...defined({ timeoutMs }) };
  const isSilent = args.flag("json") || args.flag("quiet");
  const session = await sandboxForCommand(context, args, { warns: !isSilent, timeoutMs, detached: true });
  const { id } = session.sandbox;
  let ref: string;
  try {
    const process = await unlessInterrupted(context, startCommand(session.sandbox, { ...command, keepLastOutput: true }));
    ref = process.ref;
    process.detach();
  } catch (error) {
    await session.undo();
    throw error;
  }
  await session.end();
  // If a signal arrived at the last moment, a new sandbox is removed, but in an existing one the command continues.
  const signal = context.interruption.received();
  if (signal !== null && !args.flag("sandbox")) return exitCodeOf(signal);
  await (args.flag("json") ? context.stdout.printJson({ sandbox: id, ref }) : context.stdout.print(line`${id}`));
  return 0;
}
