import { CaissonError } from "../../contract/error.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { askYes, canAsk } from "../terminal/ask-yes.ts";
import { type Line, line } from "../terminal/line.ts";

/**
 * Whether sandboxes may be removed: at once where nothing changed in their copies of folders, or with `--yes`;
 * otherwise what would go with them is told, and somebody asked. Throws `conflict` when nobody is there to be asked.
 */
export async function agreesToEnd(context: CliContext, given: ParsedArguments, words: readonly string[]): Promise<boolean> {
  if (given.flag("yes")) return true;
  const losses: Line[] = [];
  for (const word of words) {
    // One that is not there, or cannot be looked at, is told of by its removal.
    const changed = await context.station.sandboxes.changedFiles(word).catch(() => null);
    if (changed === null || changed.files === 0) continue;
    const files = changed.files === 1 && !changed.isMinimum ? "file" : "files";
    losses.push(line`${changed.files}${changed.isMinimum ? " or more" : ""} ${files} changed in ${word}`);
  }
  if (losses.length === 0) return true;
  if (!canAsk(context) || given.optionNames.includes("json")) {
    throw new CaissonError("conflict", losses.map(({ text }) => text).join("; "), {
      hint: "`caisson diff SANDBOX` shows it, `caisson apply SANDBOX` takes it; --yes removes it all the same.",
    });
  }
  await context.stdout.print(losses);
  return await askYes(context, line`Remove ${losses.length === 1 ? "it" : "them"} all the same?`);
}
