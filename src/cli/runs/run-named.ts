import { realpath } from "node:fs/promises";
import { relative, resolve } from "node:path";
import { CaissonError } from "../../contract/error.ts";
import { SessionId } from "../../contract/run.ts";
import type { CliContext } from "../context.ts";
import { visibleText } from "../terminal/plain-text.ts";

/** Runs of other folders that are named where this one has none. */
const NAMED_MAX = 3;

/**
 * The run, or the session, that was named; the run of this folder that changed last, when none was. Throws `not_found`.
 */
export async function runNamed(context: Pick<CliContext, "station" | "cwd">, name: string | undefined): Promise<string> {
  if (name !== undefined) return name;
  const { runs } = context.station;
  const [newest] = (await runs.list({ folder: context.cwd, parent: null, limit: 1 })).runs;
  if (newest) return newest.run;
  const elsewhere = await runs.list({ parent: null, limit: NAMED_MAX });
  if (elsewhere.total === 0) throw new CaissonError("not_found", "there is no run yet", { hint: 'Start one: caisson run "…"' });
  const named = elsewhere.runs.map(({ run, folder }) => (folder === null ? run : `${run} (${visibleText(folder)})`)).join(", ");
  const more = elsewhere.total > elsewhere.runs.length ? ", …" : "";
  throw new CaissonError("not_found", `no run works on ${visibleText(context.cwd)}`, {
    hint: `Name one of the others: ${named}${more}. \`caisson ps --all\` lists them.`,
  });
}

/**
 * The words of `diff` and `apply`: a run, a session or a sandbox and then paths of its workspace, or paths alone: then
 * this folder's newest run is meant, and they are relative to where one stands.
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
  const [top, here] = await Promise.all([folder ?? context.cwd, context.cwd].map((path) => realpath(path).catch(() => path)));
  return { name, paths: words.map((word) => relative(top as string, resolve(here as string, word)) || "."), isRunNamed: false };
}

/** Words that begin with a run, or with none: then this folder's newest is meant. */
export async function runAndRest(context: CliContext, words: readonly string[]): Promise<{ run: string; rest: readonly string[] }> {
  const [first] = words;
  const isRun = first !== undefined && (await standsFor(first, (word) => context.station.runs.get(word)));
  return isRun ? { run: first, rest: words.slice(1) } : { run: await runNamed(context, undefined), rest: words };
}

/**
 * Whether a word is, or looks like, something of ours rather than a path or a text. Throws for what stands for several.
 */
async function standsFor(word: string, find: (word: string) => Promise<unknown>): Promise<boolean> {
  // What begins like an id is meant as one, and whoever takes it says whether it is there.
  if (/^(?:run|sb)_[a-z2-7]{1,12}$/.test(word)) return true;
  if (!SessionId.safeParse(word).success) return false;
  return await find(word).then(
    () => true,
    (error: unknown) => {
      if (error instanceof CaissonError && error.code === "not_found") return false;
      throw error;
    },
  );
}
