import type { NumberedRunEvent } from "../runs/verbs.ts";
import { type AskedCall, mentions, resultOf, type SeenCall, testCounts } from "./seen-call.ts";
import { noteProgress, type Trajectory } from "./trajectory.ts";

export const CALLS_MAX = 40;
const KNOWN_MAX = 512;
const TESTS_MAX = 32;
const SEQS_MAX = 40;
/** Whoever waits for more calls than this does nothing else. */
const WAITS_MAX = 40;

/** A call has ended: what it was, and whether it brought the run further. */
export function applyEndedCall(trajectory: Trajectory, { seq, data }: Extract<NumberedRunEvent, { type: "tool.ended" }>): void {
  const asked = trajectory.open.get(data.call);
  trajectory.open.delete(data.call);
  if (asked === undefined) return;
  const details = (data.details ?? {}) as { changedFiles?: unknown; state?: unknown };
  const isPolling = asked.tool === "bash_output" && details.state === "It is still running.";
  // A command that failed did not wait: `sleep 1; npm test` again and again is the same failure.
  trajectory.waits = isPolling || (asked.sleeps && data.outcome === "ok") ? trajectory.waits + 1 : 0;
  const isWaiting = trajectory.waits > 0 && trajectory.waits <= WAITS_MAX;
  const result = resultOf(data.text);
  const isNew = !trajectory.known.has(result);
  // The same change once more, back and forth, leads nowhere.
  const hasChanged = details.changedFiles === true && !trajectory.known.has(asked.signature);
  const better = data.outcome === "ok" || data.outcome === "error" ? testProgress(trajectory, asked, data) : null;
  const handedOver = asked.tool === "agent" && data.outcome === "ok" && isNew;
  const why = hasChanged ? "a file was changed" : (better ?? (handedOver ? "another agent did its part" : null));
  remember(trajectory.known, result);
  remember(trajectory.known, asked.signature);
  const isOnTask = asked.isOnTask || mentions(trajectory.lastWords, trajectory.words);
  const seen: SeenCall = {
    seq,
    tool: asked.tool,
    signature: asked.signature,
    shape: asked.shape,
    result,
    outcome: data.outcome,
    isWaiting,
    isProgress: why !== null,
    isNew: isNew && data.outcome === "ok",
    isOnTask,
  };
  trajectory.calls = [...trajectory.calls, seen].slice(-CALLS_MAX);
  trajectory.stepWaits = isWaiting && trajectory.stepWaits !== false;
  if (asked.isCommand && !isWaiting) trajectory.hasCommands = true;
  noteFailure(trajectory, seen);
  if (why !== null) noteProgress(trajectory, seq, why);
}

/** A test command that did worse before. */
function testProgress(trajectory: Trajectory, { tool, shape }: AskedCall, data: { outcome: string; text: string }): string | null {
  if (tool !== "bash") return null;
  const { tests } = trajectory;
  const counts = testCounts(data.text) ?? { failed: 0, passed: 0 };
  const before = tests.get(shape);
  const now = { ...counts, isOk: data.outcome === "ok" };
  tests.delete(shape);
  tests.set(shape, now);
  if (tests.size > TESTS_MAX) tests.delete(tests.keys().next().value ?? "");
  if (before === undefined) return null;
  if (!before.isOk && now.isOk) return "a command that failed before succeeds";
  if (now.failed < before.failed || now.passed > before.passed) return "tests do better than before";
  return null;
}

function noteFailure(trajectory: Trajectory, { seq, outcome, shape, result, isWaiting }: SeenCall): void {
  if (isWaiting) return;
  const hasFailed = outcome !== "ok" && outcome !== "interrupted";
  trajectory.errors = hasFailed ? [...trajectory.errors, seq].slice(-SEQS_MAX) : [];
  const { failing } = trajectory;
  if (hasFailed && failing?.shape === shape && failing.result === result) failing.seqs = [...failing.seqs, seq].slice(-SEQS_MAX);
  else if (hasFailed) trajectory.failing = { shape, result, seqs: [seq] };
  else if (failing?.shape === shape) trajectory.failing = null;
}

function remember(known: Set<string>, what: string): void {
  known.delete(what);
  known.add(what);
  if (known.size > KNOWN_MAX) known.delete(known.values().next().value ?? "");
}
