import { CaissonError } from "../../contract/error/error.ts";
import { ignore } from "../../lib/failures.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { askYes, canAsk } from "../terminal/ask-yes.ts";
import { type Line, line } from "../terminal/line.ts";

/**
 * Whether sandboxes may be removed. Agrees at once if their copies of folders are unchanged, or with `--yes`; otherwise
 * prints what would be lost and asks. Throws `conflict` if there is no terminal.
 */
export async function agreesToEnd(context: CliContext, args: ParsedArguments, words: readonly string[]): Promise<boolean> {
  if (args.flag("yes")) return true;
  const losses: Line[] = [];
  for (const word of words) {
    const changed = await ignore(context.station.sandboxes.changedFiles(word), "its removal reports a missing or damaged sandbox");
    if (changed == null || changed.files === 0) continue;
    const files = changed.files === 1 && !changed.isMinimum ? "file" : "files";
    losses.push(line`${changed.files}${changed.isMinimum ? " or more" : ""} ${files} changed in ${word}`);
  }
  if (losses.length === 0) return true;
  if (!canAsk(context) || args.optionNames.includes("json")) {
    throw new CaissonError("conflict", losses.map(({ text }) => text).join("; "), {
      hint: "Review the changes with `caisson diff SANDBOX`, apply them with `caisson apply SANDBOX`, or remove them with --yes.",
    });
  }
  await context.stdout.print(losses);
  return await askYes(context, line`Remove ${losses.length === 1 ? "it" : "them"} anyway?`);
}
