import { CaissonError } from "../../contract/error.ts";
import { parseRequest } from "../../contract/parse-request.ts";
import type { RunFacts } from "../../contract/run-facts.ts";
import type { SessionEvent } from "../../contract/session-event.ts";
import { type UndoneTurn, UndoTurns } from "../../contract/session-verbs.ts";
import { type Changes, type FileSide, sameSide } from "../../workspace/change.ts";
import type { Turn } from "../runs/run-turns.ts";
import { restoreFiles } from "./restore-points.ts";
import { type ChangesOptions, changesOf } from "./session-changes.ts";
import { keptBefore, type StepFilesOptions, turnAt } from "./step-files.ts";

export interface UndoOptions extends ChangesOptions, StepFilesOptions {
  sessions: ChangesOptions["sessions"];
  /** Of a run. Throws `not_found`. */
  facts: (run: string) => Promise<RunFacts>;
}

/** See `SessionVerbs.undo`. */
export async function undoTurn(run: string, request: UndoTurns, options: UndoOptions): Promise<UndoneTurn> {
  const { to } = parseRequest(UndoTurns, request, "to take turns back");
  const { sessions } = options;
  const facts = await options.facts(run);
  if (facts.status !== "ended")
    throw new CaissonError("conflict", `the run ${run} has not ended`, { hint: `Stop it first: caisson stop ${run}` });
  const session = await sessions.get(facts.session);
  const history = await sessions.history(session.id);
  const undoable = turnsLeft(run, await options.turns(run), history);
  const first = to === undefined ? undoable.at(-1) : await turnAt(session, { run, step: to }, options);
  const undone = undoable.filter(({ seq }) => first !== undefined && seq >= first.seq);
  const [turn] = undone;
  if (turn === undefined) throw new CaissonError("not_found", `there is no turn of ${run} left to take back`);
  // No sandbox was ever on it: there is nothing to take back.
  if (session.runtime === null) return { session: session.id, files: [] };
  const runtime = await options.runtime(session.runtime);
  const files = keptBefore(turn, { run, session, history, points: await sessions.restorePoints(session.id) });
  if (files === undefined) {
    throw new CaissonError("unsupported", `the files were not kept as they were before the last turn of ${run}`, {
      hint: "Some changes are too much to be kept; ask the agent to take back what it did.",
    });
  }
  const before = await changesOf(session, options);
  {
    await using _ = await sessions.edit(session.id);
    await restoreFiles(await sessions.get(session.id), files, { sessions, runtime });
  }
  const changed = differing(before, await changesOf(await sessions.get(session.id), options));
  // The last one first, as if each had been taken back by itself.
  for (const { seq } of undone.toReversed())
    await sessions.record(session.id, { type: "session.undone", data: { run, turnSeq: seq, count: changed.length } });
  return { session: session.id, files: changed };
}

/** Those that nobody took back, oldest first. Throws `conflict` when another run has worked there since the last. */
function turnsLeft(run: string, turns: readonly Turn[], history: readonly SessionEvent[]): Turn[] {
  const undone = history.flatMap((event) => (event.type === "session.undone" && event.data.run === run ? [event.data.turnSeq] : []));
  const left = turns.filter(({ seq }) => !undone.includes(seq));
  const turn = left.at(-1);
  if (turn === undefined) return [];
  const later = history.find((event) => event.type === "session.run_started" && event.data.run !== run && event.at > turn.at);
  if (later?.type === "session.run_started") {
    throw new CaissonError("conflict", `the run ${later.data.run} has worked on the same files since`, {
      hint: "Its changes would be undone as well.",
    });
  }
  return left;
}

function differing(before: Changes, after: Changes): string[] {
  const sides = ({ changes }: Changes) => new Map<string, FileSide | null>(changes.map((change) => [change.path, change.after]));
  const [then, now] = [sides(before), sides(after)];
  const paths = [...new Set([...then.keys(), ...now.keys()])].sort();
  return paths.filter((path) => !(then.has(path) && now.has(path) && sameSide(then.get(path) ?? null, now.get(path) ?? null)));
}
