import { ignore } from "../../lib/failures.ts";
import type { HeldSandbox } from "../../verbs/held-sandbox.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { line } from "../terminal/line.ts";

/**
 * Prints a line about files that the command changed in the sandbox's copy of the folder, which is removed with the
 * sandbox. Users of other tools expect to find them in the folder.
 */
export async function tellDroppedFiles(context: CliContext, args: ParsedArguments, sandbox: HeldSandbox): Promise<void> {
  const { workspace } = sandbox.info;
  if (workspace.kind !== "folder" || workspace.access !== "overlay") return;
  const changed = await ignore(context.station.sandboxes.changedFiles(sandbox.id), "the command's own result counts");
  if (changed == null || changed.files === 0) return;
  const { files, isMinimum } = changed;
  const isOne = files === 1 && !isMinimum;
  const were = isOne ? "was" : "were";
  const count = `${files.toLocaleString("en")}${isMinimum ? " or more" : ""} ${isOne ? "file" : "files"}`;
  const folder = args.option("workspace")?.replace(/:overlay$/, "") ?? ".";
  if (workspace.origin !== undefined) {
    await context.stderr.print(
      line`caisson: ${count} changed there and ${were} discarded; to keep changes, use --keep, then: caisson apply SANDBOX`,
    );
    return;
  }
  await context.stderr.print(
    line`caisson: ${count} changed inside and ${were} discarded; use -w ${folder}:rw to keep ${isOne ? "it" : "them"}`,
  );
}
