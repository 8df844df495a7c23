import type { NumberedRunEvent } from "../../verbs/runs.ts";
import { type CallFingerprint, mentions, resultOf, type SeenCall, testCounts } from "./call-fingerprint.ts";
import { noteProgress, type Trajectory } from "./trajectory.ts";

export const CALLS_MAX = 40;
const KNOWN_MAX = 512;
const TESTS_MAX = 32;
const SEQS_MAX = 40;
/** A run that waits in more calls than this in a row counts as idle. */
const WAITS_MAX = 40;

/** Records a finished call: what it was, and whether it made progress. */
export function applyEndedCall(trajectory: Trajectory, { seq, data }: Extract<NumberedRunEvent, { type: "tool.ended" }>): void {
  const call = trajectory.open.get(data.call);
  trajectory.open.delete(data.call);
  if (call === undefined) return;
  const details = (data.details ?? {}) as { changedFiles?: unknown; state?: unknown };
  const isPolling = call.tool === "bash_output" && details.state === "It is still running.";
  // A failed command did not wait: repeating `sleep 1; npm test` is the same failure each time.
  trajectory.waits = isPolling || (call.sleeps && data.outcome === "ok") ? trajectory.waits + 1 : 0;
  const isWaiting = trajectory.waits > 0 && trajectory.waits <= WAITS_MAX;
  const result = resultOf(data.text);
  const isNew = !trajectory.known.has(result);
  // Repeating a change, for example by switching back and forth, is not progress.
  const hasChanged = details.changedFiles === true && !trajectory.known.has(call.signature);
  const better = data.outcome === "ok" || data.outcome === "error" ? testProgress(trajectory, call, data) : null;
  const handedOver = call.tool === "agent" && data.outcome === "ok" && isNew;
  const why = hasChanged ? "a file was changed" : (better ?? (handedOver ? "another agent finished its part" : null));
  remember(trajectory.known, result);
  remember(trajectory.known, call.signature);
  const isOnTask = call.isOnTask || mentions(trajectory.lastWords, trajectory.words);
  const seen: SeenCall = {
    seq,
    tool: call.tool,
    signature: call.signature,
    shape: call.shape,
    result,
    outcome: data.outcome,
    isWaiting,
    isProgress: why !== null,
    isNew: isNew && data.outcome === "ok",
    isOnTask,
  };
  trajectory.calls = [...trajectory.calls, seen].slice(-CALLS_MAX);
  trajectory.stepWaits = isWaiting && trajectory.stepWaits !== false;
  if (call.isCommand && !isWaiting) trajectory.hasCommands = true;
  noteFailure(trajectory, seen);
  if (why !== null) noteProgress(trajectory, seq, why);
}

/** Compares a test command with its last result. Returns the progress, or null. */
function testProgress(trajectory: Trajectory, { tool, shape }: CallFingerprint, data: { outcome: string; text: string }): string | null {
  if (tool !== "bash") return null;
  const { tests } = trajectory;
  const counts = testCounts(data.text) ?? { failed: 0, passed: 0 };
  const before = tests.get(shape);
  const now = { ...counts, isOk: data.outcome === "ok" };
  tests.delete(shape);
  tests.set(shape, now);
  if (tests.size > TESTS_MAX) tests.delete(tests.keys().next().value ?? "");
  if (before === undefined) return null;
  if (!before.isOk && now.isOk) return "a command that had failed now succeeds";
  if (now.failed < before.failed || now.passed > before.passed) return "test results improved";
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
