import type { RunState } from "./run-state.ts";

/** This many calls in a row count as no progress if they repeat only a few different calls and change no file. */
const NO_PROGRESS_CALLS = 12;
const NO_PROGRESS_KINDS = 4;
/** Further loops after this many nudges escalate, even if the agent did something new in between. */
const NUDGES_MAX = 3;

export interface Noticed {
  pattern: "same" | "alternating" | "no_progress";
  text: string;
  /** The agent ignored a nudge, so the configured action is due. */
  again: boolean;
}

/**
 * Finds a loop in the calls since the last notice, or returns null. Failed calls count like others: repeating what
 * failed is the most common loop.
 */
export function noticeLoop(state: RunState, threshold: number): Noticed | null {
  const since = state.noticed ? state.callsEnded - state.noticed.atCall : state.callsEnded;
  if (since === 0) return null;
  const calls = state.callHistory.slice(-since);
  const again = state.noticed !== null && (state.noticed.times >= NUDGES_MAX || repeatsEarlier(state));
  const last = calls.slice(-threshold);
  if (last.length === threshold && last.every((call) => call.signature === last[0]?.signature)) {
    return { pattern: "same", text: `The same call was made ${threshold} times in a row: ${last[0]?.shown}`, again };
  }
  const pairs = calls.slice(-2 * threshold);
  const [a, b] = pairs;
  if (pairs.length === 2 * threshold && a && b && pairs.every((call, at) => call.signature === (at % 2 === 0 ? a : b).signature)) {
    return { pattern: "alternating", text: `Two calls alternate: ${a.shown} and ${b.shown}`, again };
  }
  const tail = calls.slice(-NO_PROGRESS_CALLS);
  if (
    tail.length === NO_PROGRESS_CALLS &&
    tail.every((call) => !call.changedFiles) &&
    new Set(tail.map((call) => call.signature)).size <= NO_PROGRESS_KINDS
  ) {
    return { pattern: "no_progress", text: `${NO_PROGRESS_CALLS} calls repeated the same few actions without changing a file`, again };
  }
  return null;
}

/** Returns whether every call since the nudge was also made before it. */
function repeatsEarlier(state: RunState): boolean {
  if (!state.noticed) return false;
  const since = state.callsEnded - state.noticed.atCall;
  const cut = Math.max(0, state.callHistory.length - since);
  const before = new Set(state.callHistory.slice(0, cut).map((call) => call.signature));
  return state.callHistory.slice(cut).every((call) => before.has(call.signature));
}
