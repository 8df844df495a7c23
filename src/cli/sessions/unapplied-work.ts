import { CaissonError } from "../../contract/error.ts";
import type { SessionDetails } from "../../contract/session-verbs.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { askYes, canAsk } from "../terminal/ask-yes.ts";
import { line } from "../terminal/line.ts";
import { visibleText } from "../terminal/plain-text.ts";

/** Files of one session that are named; all are counted. */
const NAMED_MAX = 5;

/**
 * Whether sessions may be removed: at once where nothing would be lost, or with `--yes`; otherwise what would be lost
 * is named, and somebody asked. Throws `conflict` when nobody is there to be asked, and `not_found`.
 */
export async function agreesToLose(context: CliContext, given: ParsedArguments, names: readonly string[]): Promise<boolean> {
  if (given.flag("yes")) return true;
  const losses: { name: string; text: string }[] = [];
  for (const name of names) {
    const text = await lossOf(context, name);
    if (text !== null) losses.push({ name, text });
  }
  const [first] = losses;
  if (first === undefined) return true;
  if (!canAsk(context) || given.flag("json")) {
    throw new CaissonError("conflict", losses.map(({ text }) => text).join("; "), {
      hint: `Look at it with \`caisson diff ${first.name}\`; --yes removes it all the same.`,
    });
  }
  await context.stdout.print(losses.map(({ text }) => line`${text}`));
  return await askYes(context, line`Remove ${losses.length === 1 ? "it" : "them"} all the same?`);
}

/**
 * What would be lost with a session, in words. Null: nothing, or somebody works in it and its removal is refused
 * anyway.
 */
async function lossOf(context: CliContext, name: string): Promise<string | null> {
  const { sessions, runs } = context.station;
  const session = await sessions.get(name).catch(ifDamaged);
  if (session === null || (session.lock && !session.lock.stale) || isKept(session)) return null;
  const of = session.id.startsWith("run_")
    ? session.id
    : `${session.id} (${(await runs.list({ session: session.id, limit: 1 })).runs[0]?.run ?? "no run"})`;
  try {
    const { files, leftOut } = await sessions.diff(session.id, { signal: context.interruption.signal });
    // Any git inside touches its own folder.
    const paths = [...files, ...leftOut].map(({ path }) => path).filter((path) => !/(^|\/)\.git$/.test(path));
    if (paths.length === 0) return null;
    const named = paths.slice(0, NAMED_MAX).map(visibleText).join(", ");
    const more = paths.length > NAMED_MAX ? ", …" : "";
    return `${paths.length} ${paths.length === 1 ? "file" : "files"} of ${of} ${paths.length === 1 ? "was" : "were"} not applied: ${named}${more}`;
  } catch (error) {
    if (!(error instanceof CaissonError) || error.code === "cancelled") throw error;
    return `what ${of} changed cannot be looked at (${error.message})`;
  }
}

/** Nothing of it can be shown; its removal takes --force. */
function ifDamaged(error: unknown): null {
  if (error instanceof CaissonError && error.code === "internal") return null;
  throw error;
}

/** A branch was made after the last run there began. */
function isKept({ history }: SessionDetails): boolean {
  return (
    history.findLastIndex(({ type }) => type === "session.branched") > history.findLastIndex(({ type }) => type === "session.run_started")
  );
}
