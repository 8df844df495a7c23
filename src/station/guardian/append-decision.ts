import type { GuardianAction } from "../../contract/guardian-config.ts";
import type { GuardianFinding } from "../../contract/guardian-event.ts";
import type { NewRunEvent } from "../../contract/run-event.ts";
import type { RunFacts } from "../../contract/run-facts.ts";
import { newId } from "../../lib/new-id.ts";
import type { Log } from "../../log/log.ts";
import { appendForeign } from "../runs/append-foreign.ts";
import { cut } from "./detectors.ts";

export interface Decision {
  action: GuardianAction;
  coherence: number;
  findings: readonly GuardianFinding[];
}

/** So much later among the runs that wait. */
const PRIORITY_LESS = 10;
const PRIORITY_MIN = -100;

/**
 * A decision and what is done about the run are one append: the station may die at any moment, and there is never the
 * one without the other, nor the same twice. `expectedSeq`: of what the decision was made from. False when the run has
 * gone on since, or is not in a state any more in which something could be done.
 */
export async function appendDecision(log: Log, run: string, decision: Decision & { expectedSeq: number }): Promise<boolean> {
  let isAppended = false;
  await appendForeign(log, run, (facts, seq) => {
    isAppended = seq === decision.expectedSeq && isPossible(facts, decision.action);
    if (!isAppended) return null;
    const { action, coherence, findings } = decision;
    const text = cut(findings.map((each) => each.text).join("; "));
    const decided = { decision: newId("dec"), action, coherence, findings: [...findings], text };
    return [{ type: "guardian.decided", data: decided }, ...effectsOf(action, { text, facts })];
  });
  return isAppended;
}

function isPossible({ status, stopRequested, asked, queued }: RunFacts, action: GuardianAction): boolean {
  if (stopRequested !== null || asked.length > 0) return false;
  return action === "reprioritize" ? queued !== null : status === "running" || status === "created";
}

type Effect = Extract<
  NewRunEvent,
  { type: "message.received" | "permission.asked" | "run.paused" | "run.stop_requested" | "run.prioritized" }
>;

function effectsOf(action: GuardianAction, { text, facts }: { text: string; facts: RunFacts }): Effect[] {
  switch (action) {
    case "nudge": {
      const words = `A guardian watches this run, and sees: ${text}. Say what you expected and what happened instead. Then try something different, or end and say what is missing.`;
      return [{ type: "message.received", data: { message: newId("msg"), source: "guardian", mode: "steer", text: words } }];
    }
    case "reprioritize":
      return [{ type: "run.prioritized", data: { by: "guardian", priority: Math.max(facts.priority - PRIORITY_LESS, PRIORITY_MIN) } }];
    case "pause": {
      const asked = `The guardian sees: ${text}. Let it go on?`;
      return [
        { type: "permission.asked", data: { question: newId("ask"), call: null, kind: "stuck", text: asked, pattern: null } },
        { type: "run.paused", data: { why: "stuck", text: asked } },
      ];
    }
    case "stop":
      return [{ type: "run.stop_requested", data: { by: `guardian: ${text}` } }];
  }
}
