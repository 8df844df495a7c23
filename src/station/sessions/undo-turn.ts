import { CaissonError } from "../../contract/error/error.ts";
import { parseRequest } from "../../contract/error/parse-request.ts";
import type { RunFacts } from "../../contract/run/run-facts.ts";
import type { SessionEvent } from "../../contract/session/session-event.ts";
import { type UndoneTurn, UndoTurns } from "../../contract/session/session-verbs.ts";
import { type Changes, type FileSide, sameSide } from "../../workspace/change.ts";
import type { Turn } from "../vocabulary/turn.ts";
import { type ChangesOptions, changesOf } from "./session-changes.ts";
import { filesBefore, type StepFilesOptions, turnAt } from "./step-files.ts";
import { restoreFiles } from "./stored-points.ts";

export interface UndoOptions extends ChangesOptions, StepFilesOptions {
  sessions: ChangesOptions["sessions"];
  /** Returns a run's facts. Throws `not_found`. */
  facts: (run: string) => Promise<RunFacts>;
}

/** See `SessionVerbs.undo`. */
export async function undoTurn(run: string, request: UndoTurns, options: UndoOptions): Promise<UndoneTurn> {
  const { to } = parseRequest(UndoTurns, request, "to undo turns");
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
  if (turn === undefined) throw new CaissonError("not_found", `${run} has no turn left to undo`);
  // It never had a sandbox, so there is nothing to undo.
  if (session.runtime === null) return { session: session.id, files: [] };
  const runtime = await options.runtime(session.runtime);
  const files = filesBefore(turn, { run, session, history, points: await sessions.points(session.id) });
  if (files === undefined) {
    throw new CaissonError("unsupported", `the files from before the last turn of ${run} were not stored`, {
      hint: "They were stored for a limited time, or were too large. Ask the agent to undo its work.",
    });
  }
  const before = await changesOf(session, options);
  {
    await using _ = await sessions.edit(session.id);
    await restoreFiles(await sessions.get(session.id), files, { sessions, runtime });
  }
  const changed = changedPaths(before, await changesOf(await sessions.get(session.id), options));
  // The last turn comes first, as if each had been undone separately.
  for (const { seq } of undone.toReversed())
    await sessions.record(session.id, { type: "session.undone", data: { run, turnSeq: seq, count: changed.length } });
  return { session: session.id, files: changed };
}

/**
 * Returns the turns that were not undone, oldest first. Throws `conflict` if another run has worked in the session
 * since the last turn.
 */
function turnsLeft(run: string, turns: readonly Turn[], history: readonly SessionEvent[]): Turn[] {
  const undone = history.flatMap((event) => (event.type === "session.undone" && event.data.run === run ? [event.data.turnSeq] : []));
  const left = turns.filter(({ seq }) => !undone.includes(seq));
  const turn = left.at(-1);
  if (turn === undefined) return [];
  const later = history.find((event) => event.type === "session.run_started" && event.data.run !== run && event.at > turn.at);
  if (later?.type === "session.run_started") {
    throw new CaissonError("conflict", `the run ${later.data.run} has worked on the same files since`, {
      hint: "Undoing would also undo its changes.",
    });
  }
  return left;
}

/** Returns the paths that differ between two states of a workspace. */
export function changedPaths(before: Changes, after: Changes): string[] {
  const sides = ({ changes }: Changes) => new Map<string, FileSide | null>(changes.map((change) => [change.path, change.after]));
  const [then, now] = [sides(before), sides(after)];
  const paths = [...new Set([...then.keys(), ...now.keys()])].sort();
  return paths.filter((path) => !(then.has(path) && now.has(path) && sameSide(then.get(path) ?? null, now.get(path) ?? null)));
}
