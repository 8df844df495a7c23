import { CaissonError } from "../../contract/error/error.ts";
import type { Session, StoredPoint } from "../../contract/session/session.ts";
import type { SessionEvent } from "../../contract/session/session-event.ts";
import type { SessionPoint } from "../../contract/session/session-verbs.ts";
import { ignore } from "../../lib/failures.ts";
import type { SessionStore } from "../../workspace/sessions.ts";
import type { Turn } from "../vocabulary/turn.ts";

/** The files of a session at some time; null for the time before any work on them. */
export type PointFiles = StoredPoint["files"] | null;

export interface StepFilesOptions {
  sessions: SessionStore;
  /** Returns the turns of a run, oldest first. */
  turns: (run: string) => Promise<Turn[]>;
  /** Returns the session and run from which a fork has this step; null if it took the step itself. */
  origin?: (at: { run: string; step: number }) => Promise<{ session: Session; run: string } | null>;
}

/** Returns the points of a session: the turns of runs before which its files were stored, and the steps after which. */
export async function pointsOf(session: Session, options: StepFilesOptions): Promise<SessionPoint[]> {
  const history = await options.sessions.history(session.id);
  const points = await options.sessions.points(session.id);
  const started = history.flatMap((event) => (event.type === "session.run_started" ? [event.data.run] : []));
  const runs = [...new Set([...started, ...points.map(({ run }) => run)])];
  const found: SessionPoint[] = [];
  for (const run of runs) {
    for (const turn of (await ignore(options.turns(run), "a run with a damaged log has no points")) ?? []) {
      if (filesBefore(turn, { run, session, history, points }) === undefined) continue;
      found.push({ run, step: turn.stepsBefore, turn: turn.seq, at: turn.at });
    }
    for (const { step, at, ...point } of points)
      if (point.run === run && step !== undefined && at !== undefined) found.push({ run, step, at });
  }
  return found.sort((a, b) => (a.run === b.run ? a.step - b.step : 0));
}

/** Returns the files from before a turn. Undefined if they were not stored. */
export function filesBefore(
  turn: Turn,
  { run, session, history, points }: { run: string; session: Session; history: readonly SessionEvent[]; points: readonly StoredPoint[] },
): PointFiles | undefined {
  const point = points.find((each) => each.run === run && each.turnSeq === turn.seq);
  if (point) return point.files;
  const first = history.find(({ type }) => type === "session.run_started");
  const isFirst = turn.seq === 1 && first?.type === "session.run_started" && first.data.run === run;
  // Before the first turn the files are untouched and need no copy, unless they come from a checkout or another
  // session.
  return isFirst && session.source.kind !== "git" && session.forked === null ? null : undefined;
}

/**
 * Returns the turn that began after a run had taken this many steps. Throws `unsupported` if none did, or if its files
 * were not stored.
 */
export async function turnAt(session: Session, { run, step }: { run: string; step: number }, options: StepFilesOptions): Promise<Turn> {
  const turns = await options.turns(run);
  const points = (await pointsOf(session, options)).filter((point) => point.run === run);
  const point = points.findLast((each) => each.step === step && each.turn !== undefined);
  const turn = turns.find(({ seq }) => seq === point?.turn);
  if (turn !== undefined) return turn;
  throw notStored(
    { run, step },
    points.filter((each) => each.turn !== undefined),
  );
}

function notStored({ run, step }: { run: string; step: number }, points: readonly SessionPoint[]): CaissonError {
  const known = [...new Set(points.map((each) => each.step))].join(", ");
  return new CaissonError("unsupported", `the files after step ${step} of ${run} were not stored`, {
    hint:
      known === ""
        ? "Files are stored after each step, in runtimes that can do so, and for a limited time."
        : `They were stored after these steps: ${known}.`,
    details: { steps: points.map((each) => each.step) },
  });
}

/** Returns the files after a step of a run. Throws `unsupported` if they were not stored. */
export async function filesAfter(session: Session, at: { run: string; step: number }, options: StepFilesOptions): Promise<PointFiles> {
  const stored = await options.sessions.points(session.id);
  const points = (await pointsOf(session, options)).filter((point) => point.run === at.run && point.step === at.step);
  const turnSeq = points.findLast(({ turn }) => turn !== undefined)?.turn;
  const turn = turnSeq === undefined ? undefined : (await options.turns(at.run)).find(({ seq }) => seq === turnSeq);
  if (turn !== undefined) {
    const history = await options.sessions.history(session.id);
    return filesBefore(turn, { run: at.run, session, history, points: stored }) ?? null;
  }
  const point = stored.find(({ run, step }) => run === at.run && step === at.step);
  if (point !== undefined) return point.files;
  const origin = (await options.origin?.(at)) ?? null;
  if (origin !== null) return await filesAfter(origin.session, { run: origin.run, step: at.step }, options);
  throw notStored(
    at,
    (await pointsOf(session, options)).filter(({ run }) => run === at.run),
  );
}
