import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { pairs } from "../options/parse-pairs.ts";
import { parseSandboxOptions } from "../options/parse-sandbox-options.ts";
import { printResult } from "../print-result.ts";
import { line } from "../terminal/line.ts";
import { printSandboxWarnings, tellSnapshotWorkspace } from "./sandbox-warnings.ts";

/** `caisson sandbox create` */
export async function createSandbox(context: CliContext, args: ParsedArguments): Promise<number> {
  const request = parseSandboxOptions(context, args, { keep: true, labels: pairs(context, args.options("label"), "label") });
  const sandbox = await context.station.sandboxes.create(request, context.interruption);
  // If a signal arrived at the last moment, the user never sees the id and could not remove the sandbox.
  if (context.interruption.received() !== null) {
    await sandbox.destroy();
    return 130;
  }
  await sandbox.release();
  await printSandboxWarnings(context, sandbox.info);
  await tellSnapshotWorkspace(context, args, sandbox.info);
  return await printResult(context, args, { json: sandbox.info, text: line`${sandbox.id}` });
}
