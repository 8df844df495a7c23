import { resolve } from "node:path";
import { CaissonError } from "../../contract/error.ts";
import { showBytes } from "../../lib/quantity.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { line } from "../terminal/line.ts";

/** `caisson backup FILE` */
export async function backup(context: CliContext, given: ParsedArguments): Promise<number> {
  const made = await context.station.machine.backup(resolve(context.cwd, given.positionals[0] ?? ""));
  if (given.flag("json")) await context.stdout.printJson(made);
  else await context.stderr.print(line`caisson: ${made.file} holds everything, in ${showBytes(made.bytes)}`);
  return 0;
}

/** `caisson restore FILE` */
export async function restore(context: CliContext, given: ParsedArguments): Promise<number> {
  const running = await context.server.reach();
  if (running !== null) {
    throw new CaissonError("conflict", `the station ${running.status.pid} uses this state folder`, { hint: "End it first: caisson down" });
  }
  const restored = await context.station.machine.restore(resolve(context.cwd, given.positionals[0] ?? ""));
  if (given.flag("json")) await context.stdout.printJson(restored);
  else await context.stderr.print(line`caisson: everything is as it was at ${restored.createdAt}`);
  return 0;
}
