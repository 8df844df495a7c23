import { CaissonError } from "../../contract/error.ts";
import type { RestorePoint, Session } from "../../contract/session.ts";
import type { SessionEvent } from "../../contract/session-event.ts";
import type { SessionPoint } from "../../contract/session-verbs.ts";
import type { SessionStore } from "../../workspace/sessions.ts";
import type { Turn } from "../runs/run-turns.ts";

/** The files of a session at some time: kept then, or as nobody had worked on them yet (null). */
export type KeptFiles = RestorePoint["files"] | null;

export interface StepFilesOptions {
  sessions: SessionStore;
  /** Of a run, oldest first. */
  turns: (run: string) => Promise<Turn[]>;
}

/** Where the files of a session can be had as they were: before each turn of its runs for which they were kept. */
export async function pointsOf(session: Session, options: StepFilesOptions): Promise<SessionPoint[]> {
  const history = await options.sessions.history(session.id);
  const points = await options.sessions.restorePoints(session.id);
  const runs = [...new Set(history.flatMap((event) => (event.type === "session.run_started" ? [event.data.run] : [])))];
  const found: SessionPoint[] = [];
  for (const run of runs) {
    for (const turn of await options.turns(run).catch(() => [])) {
      if (keptBefore(turn, { run, session, history, points }) === undefined) continue;
      found.push({ run, step: turn.stepsBefore, turn: turn.seq, at: turn.at });
    }
  }
  return found;
}

/** The files as they were before a turn. Undefined where they were not kept. */
export function keptBefore(
  turn: Turn,
  { run, session, history, points }: { run: string; session: Session; history: readonly SessionEvent[]; points: readonly RestorePoint[] },
): KeptFiles | undefined {
  const point = points.find((each) => each.run === run && each.turnSeq === turn.seq);
  if (point) return point.files;
  const first = history.find(({ type }) => type === "session.run_started");
  const isFirst = turn.seq === 1 && first?.type === "session.run_started" && first.data.run === run;
  // What nobody had worked on is there without a copy; a check-out, and what came from another session, is not.
  return isFirst && session.source.kind !== "git" && session.forked === null ? null : undefined;
}

/** The turn before which a run had taken so many steps. Throws `unsupported` where its files were not kept. */
export async function turnAt(session: Session, { run, step }: { run: string; step: number }, options: StepFilesOptions): Promise<Turn> {
  const turns = await options.turns(run);
  const points = (await pointsOf(session, options)).filter((point) => point.run === run);
  const point = points.findLast((each) => each.step === step);
  const turn = turns.find(({ seq }) => seq === point?.turn);
  if (turn !== undefined) return turn;
  const known = [...new Set(points.map((each) => each.step))].join(", ");
  throw new CaissonError("unsupported", `the files were not kept as they were after step ${step} of ${run}`, {
    hint: known === "" ? "They are kept before each turn of a run that is continued." : `They were after these steps: ${known}.`,
    details: { steps: points.map((each) => each.step) },
  });
}

/** The files after a step of a run. Throws `unsupported` where they were not kept. */
export async function filesAfter(session: Session, at: { run: string; step: number }, options: StepFilesOptions): Promise<KeptFiles> {
  const turn = await turnAt(session, at, options);
  const history = await options.sessions.history(session.id);
  const points = await options.sessions.restorePoints(session.id);
  return keptBefore(turn, { run: at.run, session, history, points }) ?? null;
}
