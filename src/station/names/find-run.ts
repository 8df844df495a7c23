import { CaissonError } from "../../contract/error/error.ts";
import { ChosenName, RunId } from "../../contract/ids.ts";
import { LOCAL_OWNER } from "../../contract/token/owner.ts";
import { defined } from "../../lib/defined.ts";
import type { Log } from "../../log/log.ts";
import { runOf, runStream } from "../vocabulary/station-names.ts";
import { CANDIDATES_MAX, type Candidate, isIdPrefix, oneOf } from "./one-of.ts";

const WORDS = { what: "run", listedBy: "caisson ps --all" };
/**
 * Resolves a word to a run: its id, an id prefix, or its name. If several runs have had the name, the open one wins,
 * otherwise the last; if several owners use it, the run of the machine's own user. A full id is returned without a
 * lookup. Throws `not_found`, and `invalid` for a word that cannot name a run or matches several.
 */
export async function findRun(word: string, log: Log): Promise<RunId> {
  return await runAmong(word, {
    async beginning(prefix) {
      const found = await log.streams({ prefix: runStream(prefix), limit: CANDIDATES_MAX });
      return found.map(({ stream }) => ({ id: runOf(stream) }));
    },
    async named(name, options) {
      const own = await runsNamed(name, { log, owner: LOCAL_OWNER, ...options });
      return own.length > 0 ? own : await runsNamed(name, { log, ...options });
    },
  });
}

/** Throws the same `not_found` as for a run that does not exist. */
export const noSuchRun = (word: string): never => oneOf(word, [], WORDS) as never;

/** Like `findRun`, among the runs that a caller can see. `named` returns the last changed first. */
export async function runAmong(
  word: string,
  seen: {
    beginning(prefix: string): Promise<readonly Candidate[]>;
    named(name: string, options: { open?: boolean }): Promise<readonly Candidate[]>;
  },
): Promise<RunId> {
  if (RunId.safeParse(word).success) return word;
  if (isIdPrefix("run", word)) return oneOf(word, await seen.beginning(word), WORDS);
  if (!ChosenName.safeParse(word).success) {
    throw new CaissonError("invalid", `${JSON.stringify(word)} is not a run id or name`, {
      hint: "An id looks like run_k3v7q2m5x4ab, and a unique prefix is enough; `caisson ps --all` lists them.",
    });
  }
  const open = await seen.named(word, { open: true });
  if (open.length > 0) return oneOf(word, open, WORDS);
  return oneOf(word, (await seen.named(word, {})).slice(0, 1), WORDS);
}

/** Returns the runs with a name, of one owner or of all, the last changed first. */
export async function runsNamed(
  name: string,
  { log, open, owner }: { log: Log; open?: boolean; owner?: string },
): Promise<{ id: RunId; name: string }[]> {
  const where = { name: [name], ...(owner !== undefined && { owner: [owner] }) };
  const { heads } = await log.heads({ prefix: runStream(""), where, limit: CANDIDATES_MAX, ...defined({ open }) });
  return heads.map(({ stream }) => ({ id: runOf(stream), name }));
}
