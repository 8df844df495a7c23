import { CaissonError } from "../../contract/error.ts";
import { ChosenName } from "../../contract/ids.ts";
import { LOCAL_OWNER } from "../../contract/owner.ts";
import { RunId } from "../../contract/run.ts";
import { defined } from "../../lib/defined.ts";
import type { Log } from "../../log/log.ts";
import { runOf, runStream } from "../runs/head-of-run.ts";
import type { RunVerbs } from "../runs/verbs.ts";
import { type Candidate, isIdPrefix, oneOf } from "./one-of.ts";

const WORDS = { what: "run", listedBy: "caisson ps --all" };
/** More than an error names. */
const CANDIDATES_MAX = 100;

/**
 * The run that a word stands for: its id, the beginning of it, or its name. Of several that had a name one after the
 * other it is the one that is not over, else the last; of several that owners call by the same name, the machine's own
 * user's. A whole id is not looked for. Throws `invalid` for what is
 * neither and for what stands for several, `not_found`.
 */
export async function findRun(word: string, log: Log): Promise<RunId> {
  return await runAmong(word, {
    async beginning(prefix) {
      const found = await log.streams({ prefix: runStream(prefix), limit: CANDIDATES_MAX });
      return found.map(({ stream }) => ({ id: runOf(stream) }));
    },
    async named(name, asked) {
      const own = await runsNamed(name, { log, owner: LOCAL_OWNER, ...asked });
      return own.length > 0 ? own : await runsNamed(name, { log, ...asked });
    },
  });
}

/** Throws `not_found`, as for every run that is not there. */
export const noSuchRun = (word: string): never => oneOf(word, [], WORDS) as never;

/** The same among those that somebody sees; `named` gives the last changed first. */
export async function runAmong(
  word: string,
  seen: {
    beginning(prefix: string): Promise<readonly Candidate[]>;
    named(name: string, asked: { open?: boolean }): Promise<readonly Candidate[]>;
  },
): Promise<RunId> {
  if (RunId.safeParse(word).success) return word;
  if (isIdPrefix("run", word)) return oneOf(word, await seen.beginning(word), WORDS);
  if (!ChosenName.safeParse(word).success) {
    throw new CaissonError("invalid", `${JSON.stringify(word)} is not a run's id or name`, {
      hint: "An id looks like run_k3v7q2m5x4ab, and its beginning is enough; `caisson ps --all` lists them.",
    });
  }
  const open = await seen.named(word, { open: true });
  if (open.length > 0) return oneOf(word, open, WORDS);
  return oneOf(word, (await seen.named(word, {})).slice(0, 1), WORDS);
}

/** The last changed first; of one owner, or of all. */
export async function runsNamed(
  name: string,
  { log, open, owner }: { log: Log; open?: boolean; owner?: string },
): Promise<{ id: RunId; name: string }[]> {
  const where = { name: [name], ...(owner !== undefined && { owner: [owner] }) };
  const { heads } = await log.heads({ prefix: runStream(""), where, limit: CANDIDATES_MAX, ...defined({ open }) });
  return heads.map(({ stream }) => ({ id: runOf(stream), name }));
}

/** The verbs that take a run, for whoever knows only the beginning of its id, or its name. */
export function withFoundRuns(verbs: RunVerbs, log: Log): RunVerbs {
  const find = (word: string) => findRun(word, log);
  return {
    ...verbs,
    get: async (run) => await verbs.get(await find(run)),
    async *events(run, asked) {
      yield* verbs.events(await find(run), asked);
    },
    wait: async (run, asked) => await verbs.wait(await find(run), asked),
    send: async (run, message) => await verbs.send(await find(run), message),
    answer: async (run, answer) => await verbs.answer(await find(run), answer),
    pause: async (run, asked) => await verbs.pause(await find(run), asked),
    resume: async (run, asked) => await verbs.resume(await find(run), asked),
    continue: async (run, request, asked) => await verbs.continue(await find(run), request, asked),
    prioritize: async (run, asked) => await verbs.prioritize(await find(run), asked),
    label: async (run, changes, asked) => await verbs.label(await find(run), changes, asked),
    adopt: async (run, asked) => await verbs.adopt(await find(run), asked),
    remove: async (run) => await verbs.remove(await find(run)),
    stop: async (run, asked) => await verbs.stop(await find(run), asked),
  };
}
