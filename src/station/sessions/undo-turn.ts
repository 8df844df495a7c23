import { CaissonError } from "../../contract/error.ts";
import type { RunFacts } from "../../contract/run-facts.ts";
import type { Session } from "../../contract/session.ts";
import type { SessionEvent } from "../../contract/session-event.ts";
import type { UndoneTurn } from "../../contract/session-verbs.ts";
import { type Changes, type FileSide, sameSide } from "../../workspace/change.ts";
import type { Turn } from "../runs/run-turns.ts";
import { restoreFiles } from "./restore-points.ts";
import { type ChangesOptions, changesOf } from "./session-changes.ts";

export interface UndoOptions extends ChangesOptions {
  /** Of a run. Throws `not_found`. */
  facts: (run: string) => Promise<RunFacts>;
  /** Of a run, oldest first. */
  turns: (run: string) => Promise<Turn[]>;
}

/** See `SessionVerbs.undo`. */
export async function undoTurn(run: string, options: UndoOptions): Promise<UndoneTurn> {
  const { sessions } = options;
  const facts = await options.facts(run);
  if (facts.status !== "ended")
    throw new CaissonError("conflict", `the run ${run} has not ended`, { hint: `Stop it first: caisson stop ${run}` });
  const session = await sessions.get(facts.session);
  const history = await sessions.history(session.id);
  const turn = lastTurn(run, await options.turns(run), history);
  // No sandbox was ever on it: there is nothing to take back.
  if (session.runtime === null) return { session: session.id, files: [] };
  const runtime = await options.runtime(session.runtime);
  const files = await filesBefore(session, turn, { run, history, ...options });
  const before = await changesOf(session, options);
  {
    await using _ = await sessions.lock(session.id, `undo_${options.identity.pid}`);
    await restoreFiles(await sessions.get(session.id), files, { sessions, runtime });
  }
  const changed = differing(before, await changesOf(await sessions.get(session.id), options));
  await sessions.record(session.id, { type: "session.undone", data: { run, turnSeq: turn.seq, count: changed.length } });
  return { session: session.id, files: changed };
}

/** The last one that nobody took back. */
function lastTurn(run: string, turns: readonly Turn[], history: readonly SessionEvent[]): Turn {
  const undone = history.flatMap((event) => (event.type === "session.undone" && event.data.run === run ? [event.data.turnSeq] : []));
  const turn = turns.findLast(({ seq }) => !undone.includes(seq));
  if (turn === undefined) throw new CaissonError("not_found", `there is no turn of ${run} left to take back`);
  const later = history.find((event) => event.type === "session.run_started" && event.data.run !== run && event.at > turn.at);
  if (later?.type === "session.run_started") {
    throw new CaissonError("conflict", `the run ${later.data.run} has worked on the same files since`, {
      hint: "Its changes would be undone as well.",
    });
  }
  return turn;
}

/** Null: those of a session that nobody had worked in. */
async function filesBefore(session: Session, turn: Turn, options: UndoOptions & { run: string; history: readonly SessionEvent[] }) {
  const points = await options.sessions.restorePoints(session.id);
  const point = points.find(({ run, turnSeq }) => run === options.run && turnSeq === turn.seq);
  if (point) return point.files;
  const first = options.history.find(({ type }) => type === "session.run_started");
  const isFirst = turn.seq === 1 && first?.type === "session.run_started" && first.data.run === options.run;
  if (isFirst && session.source.kind !== "git") return null;
  throw new CaissonError("unsupported", `the files were not kept as they were before the last turn of ${options.run}`, {
    hint: "Some changes are too much to be kept; ask the agent to take back what it did.",
  });
}

function differing(before: Changes, after: Changes): string[] {
  const sides = ({ changes }: Changes) => new Map<string, FileSide | null>(changes.map((change) => [change.path, change.after]));
  const [then, now] = [sides(before), sides(after)];
  const paths = [...new Set([...then.keys(), ...now.keys()])].sort();
  return paths.filter((path) => !(then.has(path) && now.has(path) && sameSide(then.get(path) ?? null, now.get(path) ?? null)));
}
