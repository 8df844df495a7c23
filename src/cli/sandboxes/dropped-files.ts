import type { HeldSandbox } from "../../station/sandboxes/held-sandbox.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { line } from "../terminal/line.ts";

/**
 * One line about the files that a command changed in the copy of the folder, which goes with its sandbox: who comes
 * from other tools expects them to be there.
 */
export async function tellDroppedFiles(context: CliContext, given: ParsedArguments, sandbox: HeldSandbox): Promise<void> {
  const { workspace } = sandbox.info;
  if (workspace.kind !== "folder" || workspace.access !== "overlay") return;
  const changed = await context.station.sandboxes.changedFiles(sandbox.id).catch(() => null);
  if (changed === null || changed.files === 0) return;
  const { files, isMinimum } = changed;
  const isOne = files === 1 && !isMinimum;
  const count = `${files.toLocaleString("en")}${isMinimum ? " or more" : ""} ${isOne ? "file" : "files"}`;
  const folder = given.option("workspace")?.replace(/:overlay$/, "") ?? ".";
  if (workspace.origin !== undefined) {
    await context.stderr.print(line`caisson: ${count} changed there and dropped; --keep keeps the sandbox, then: caisson apply SANDBOX`);
    return;
  }
  await context.stderr.print(line`caisson: ${count} changed inside and dropped; -w ${folder}:rw keeps ${isOne ? "it" : "them"}`);
}
