import { CaissonError } from "../../contract/error.ts";
import { ChosenName } from "../../contract/ids.ts";
import { RunId } from "../../contract/run.ts";
import type { Log } from "../../log/log.ts";
import { runOf, runStream } from "../runs/head-of-run.ts";
import type { RunVerbs } from "../runs/verbs.ts";
import { isIdPrefix, oneOf } from "./one-of.ts";

const WORDS = { what: "run", listedBy: "caisson ps --all" };
/** More than an error names. */
const CANDIDATES_MAX = 100;

/**
 * The run that a word stands for: its id, the beginning of it, or its name. Of several that had a name one after the
 * other it is the one that is not over, else the last. A whole id is not looked for. Throws `invalid` for what is
 * neither and for what stands for several, `not_found`.
 */
export async function findRun(word: string, log: Log): Promise<RunId> {
  if (RunId.safeParse(word).success) return word;
  if (isIdPrefix("run", word)) {
    const found = await log.streams({ prefix: runStream(word), limit: CANDIDATES_MAX });
    const ids = found.map(({ stream }) => ({ id: runOf(stream) }));
    return oneOf(word, ids, WORDS);
  }
  if (!ChosenName.safeParse(word).success) {
    throw new CaissonError("invalid", `${JSON.stringify(word)} is not a run's id or name`, {
      hint: "An id looks like run_k3v7q2m5x4ab, and its beginning is enough; `caisson ps --all` lists them.",
    });
  }
  const open = await runsNamed(word, { log, open: true });
  if (open.length > 0) return oneOf(word, open, WORDS);
  return oneOf(word, (await runsNamed(word, { log })).slice(0, 1), WORDS);
}

/** The last changed first. */
export async function runsNamed(name: string, { log, open }: { log: Log; open?: boolean }): Promise<{ id: RunId; name: string }[]> {
  const asked = open === undefined ? {} : { open };
  const { heads } = await log.heads({ prefix: runStream(""), where: { name: [name] }, limit: CANDIDATES_MAX, ...asked });
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
    remove: async (run) => await verbs.remove(await find(run)),
    stop: async (run, asked) => await verbs.stop(await find(run), asked),
  };
}
