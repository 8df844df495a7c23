import { CaissonError } from "../../contract/error.ts";
import { defined } from "../../lib/defined.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { line } from "../terminal/line.ts";
import { exitCodeOf } from "../terminal/signals.ts";
import { sandboxForCommand, unlessInterrupted } from "./command-sandbox.ts";
import { commandFrom, startCommand, timeoutFrom } from "./start-command.ts";

/**
 * `caisson exec -d`: the command goes on in a sandbox that stays, and nobody waits for it. `caisson logs` shows what it
 * wrote. One that cannot be started leaves no sandbox behind.
 */
export async function execDetached(context: CliContext, given: ParsedArguments): Promise<number> {
  const inVain = ["tty", "interactive"].find((name) => given.flag(name));
  if (inVain !== undefined) {
    throw new CaissonError("invalid", `exec: --detach cannot go with --${inVain}: nobody types into a command that is left alone`, {
      hint: "Leave one of them out. `caisson shell --sandbox SANDBOX` looks around in a sandbox that is there.",
    });
  }
  const timeoutMs = timeoutFrom(given);
  const command = { ...commandFrom(context, given), argv: given.positionals, ...defined({ timeoutMs }) };
  const isSilent = given.flag("json") || given.flag("quiet");
  const session = await sandboxForCommand(context, given, { warns: !isSilent, timeoutMs, detached: true });
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
  // Interrupted at the last moment: a new sandbox went with it, and in one that was there the command goes on.
  const signal = context.interruption.received();
  if (signal !== null && !given.flag("sandbox")) return exitCodeOf(signal);
  await (given.flag("json") ? context.stdout.printJson({ sandbox: id, ref }) : context.stdout.print(line`${id}`));
  return 0;
}
