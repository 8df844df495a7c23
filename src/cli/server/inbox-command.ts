import type { InboxItem } from "../../contract/inbox/inbox-verbs.ts";
import { unreachable } from "../../lib/unreachable.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { line } from "../terminal/line.ts";
import { table } from "../terminal/table.ts";

const TEXT_CHARACTERS_MAX = 60;

/** `caisson inbox` */
export async function inbox(context: CliContext, args: ParsedArguments): Promise<number> {
  const found = await context.station.inbox.list();
  if (args.flag("json")) {
    await context.stdout.printJson(found.items);
    return 0;
  }
  if (found.items.length === 0) await context.stdout.print(line`Nothing is waiting for you.`);
  else await context.stdout.print(table([["FROM", "ASKS", "TEXT", "ANSWER WITH"], ...found.items.map(row)]));
  if (!found.isWhole) await context.stderr.print(line`caisson: more items exist than are shown; answer these first`);
  return 0;
}

function row(item: InboxItem): string[] {
  const [first = ""] = item.text.split("\n");
  const text = first.length > TEXT_CHARACTERS_MAX ? `${first.slice(0, TEXT_CHARACTERS_MAX)}…` : first;
  return [item.of.id, item.asks, text, `caisson ${answerTo(item)}`];
}

/** Returns the command that answers an item, or shows it if it needs a review first. */
function answerTo({ of: { kind, id }, asks, question }: InboxItem): string {
  switch (asks) {
    case "tool":
    case "budget":
    case "stuck":
      return `answer ${id} --question ${question} allow|deny`;
    case "approval":
      return `workflow approve ${id}`;
    case "gate":
      return `spec approve ${id}`;
    case "conflict":
      return `merge show ${id}`;
    case "merge":
      return `ship merge ${id}`;
    case "failure":
      return kind === "run" ? `resume ${id}` : kind === "spec" ? `spec run ${id}` : `${kind} resume ${id}`;
    case "unresponsive":
      return `rm ${id}`;
    default:
      return unreachable(asks);
  }
}
