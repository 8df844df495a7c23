import { relative, resolve } from "node:path";
import { CaissonError } from "../../contract/error/error.ts";
import { foundOrNull } from "../../contract/error/found-or-null.ts";
import { SessionId } from "../../contract/ids.ts";
import { realPathOrNull } from "../../lib/paths.ts";
import type { CliContext } from "../context.ts";
import { visibleText } from "../terminal/plain-text.ts";

/** The number of runs in other folders that the error lists if this folder has none. */
const NAMED_MAX = 3;

/** Returns the name that was given, or this folder's most recently changed run. Throws `not_found`. */
export async function runNamed(context: Pick<CliContext, "station" | "cwd">, name: string | undefined): Promise<string> {
  if (name !== undefined) return name;
  const { runs } = context.station;
  const [newest] = (await runs.list({ folder: context.cwd, parent: null, limit: 1 })).runs;
  if (newest) return newest.run;
  const elsewhere = await runs.list({ parent: null, limit: NAMED_MAX });
  if (elsewhere.total === 0) throw new CaissonError("not_found", "there are no runs yet", { hint: 'Start one: caisson run "…"' });
  const named = elsewhere.runs.map(({ run, folder }) => (folder === null ? run : `${run} (${visibleText(folder)})`)).join(", ");
  const more = elsewhere.total > elsewhere.runs.length ? ", …" : "";
  throw new CaissonError("not_found", `no runs in ${visibleText(context.cwd)}`, {
    hint: `Name one of the others: ${named}${more}. Run \`caisson ps --all\` to list them.`,
  });
}

/**
 * Splits the arguments of `diff` and `apply`: a run, session or sandbox followed by paths in its workspace, or only
 * paths. Paths alone refer to this folder's newest run and are relative to the current folder.
 */
export async function runAndPaths(
  context: Pick<CliContext, "station" | "cwd">,
  words: readonly string[],
): Promise<{ name: string; paths: string[]; isRunNamed: boolean }> {
  const [first, ...rest] = words;
  const { sessions, sandboxes } = context.station;
  const isNamed = async (word: string) =>
    (await standsFor(word, (name) => sessions.get(name))) || (await standsFor(word, (name) => sandboxes.get(name)));
  if (first !== undefined && (await isNamed(first))) return { name: first, paths: rest, isRunNamed: true };
  const name = await runNamed(context, undefined);
  const { folder } = await context.station.runs.get(name);
  const [top, here] = [folder ?? context.cwd, context.cwd].map((path) => realPathOrNull(path) ?? path);
  return { name, paths: words.map((word) => relative(top as string, resolve(here as string, word)) || "."), isRunNamed: false };
}

/** Splits off a run at the beginning. Without one, the words refer to this folder's newest run. */
export async function runAndRest(context: CliContext, words: readonly string[]): Promise<{ run: string; rest: readonly string[] }> {
  const [first] = words;
  const isRun = first !== undefined && (await standsFor(first, (word) => context.station.runs.get(word)));
  return isRun ? { run: first, rest: words.slice(1) } : { run: await runNamed(context, undefined), rest: words };
}

/**
 * Whether a word names a run, session or sandbox, or looks like an id, rather than being a path or text. Throws for an
 * ambiguous one.
 */
async function standsFor(word: string, find: (word: string) => Promise<unknown>): Promise<boolean> {
  // A word that looks like an id is treated as one; the station checks whether it exists.
  if (/^(?:run|sb)_[a-z2-7]{1,12}$/.test(word)) return true;
  if (!SessionId.safeParse(word).success) return false;
  return (await foundOrNull(find(word))) !== null;
}
