import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { pairs } from "../options/pairs-asked.ts";
import { sandboxFrom } from "../options/spec-options.ts";
import { line } from "../terminal/line.ts";
import { printSandboxWarnings, tellSnapshotWorkspace } from "./sandbox-warnings.ts";

export async function run(context: CliContext, given: ParsedArguments): Promise<number> {
  const request = sandboxFrom(context, given, { keep: true, labels: pairs(context, given.options("label"), "label") });
  const sandbox = await context.station.sandboxes.create(request, context.interruption);
  // Interrupted at the last moment: the user never learns the id, so nobody could ever remove it.
  if (context.interruption.received() !== null) {
    await sandbox.destroy();
    return 130;
  }
  await sandbox.release();
  await printSandboxWarnings(context, sandbox.info);
  await tellSnapshotWorkspace(context, given, sandbox.info);
  await (given.flag("json") ? context.stdout.printJson(sandbox.info) : context.stdout.print(line`${sandbox.id}`));
  return 0;
}
