import { CaissonError } from "../../contract/error/error.ts";
import type { SessionDetails } from "../../contract/session/session-verbs.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { askYes, canAsk } from "../terminal/ask-yes.ts";
import { line } from "../terminal/line.ts";
import { visibleText } from "../terminal/plain-text.ts";

/** The number of files listed per session; all are counted. */
const NAMED_MAX = 5;

/**
 * Whether sessions may be removed. Agrees at once if nothing would be lost, or with `--yes`; otherwise lists what would
 * be lost and asks. Throws `conflict` if there is no terminal, and `not_found`.
 */
export async function agreesToLose(context: CliContext, args: ParsedArguments, names: readonly string[]): Promise<boolean> {
  if (args.flag("yes")) return true;
  const losses: { name: string; text: string }[] = [];
  for (const name of names) {
    const text = await lossOf(context, name);
    if (text !== null) losses.push({ name, text });
  }
  const [first] = losses;
  if (first === undefined) return true;
  if (!canAsk(context) || args.flag("json")) {
    throw new CaissonError("conflict", losses.map(({ text }) => text).join("; "), {
      hint: `Review the changes with \`caisson diff ${first.name}\`, or remove them with --yes.`,
    });
  }
  await context.stdout.print(losses.map(({ text }) => line`${text}`));
  return await askYes(context, line`Remove ${losses.length === 1 ? "it" : "them"} anyway?`);
}

/**
 * Describes the changes that would be lost with a session. Returns null if nothing would be lost, or if the session is
 * in use, because its removal is refused anyway.
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
    // Every git command inside changes the `.git` folder.
    const paths = [...files, ...leftOut].map(({ path }) => path).filter((path) => !/(^|\/)\.git$/.test(path));
    if (paths.length === 0) return null;
    const named = paths.slice(0, NAMED_MAX).map(visibleText).join(", ");
    const more = paths.length > NAMED_MAX ? ", …" : "";
    return `${paths.length} ${paths.length === 1 ? "file" : "files"} of ${of} ${paths.length === 1 ? "was" : "were"} not applied: ${named}${more}`;
  } catch (error) {
    if (!(error instanceof CaissonError) || error.code === "cancelled") throw error;
    return `the changes of ${of} cannot be read (${error.message})`;
  }
}

/** A damaged session cannot be shown; removing it requires --force. */
function ifDamaged(error: unknown): null {
  if (error instanceof CaissonError && error.code === "internal") return null;
  throw error;
}

/** Whether a branch was created after the session's last run started. */
function isKept({ history }: SessionDetails): boolean {
  return (
    history.findLastIndex(({ type }) => type === "session.branched") > history.findLastIndex(({ type }) => type === "session.run_started")
  );
}
