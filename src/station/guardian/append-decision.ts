import type { GuardianAction } from "../../contract/guardian/guardian-config.ts";
import type { GuardianFinding } from "../../contract/guardian/guardian-event.ts";
import type { NewRunEvent } from "../../contract/run/run-event.ts";
import type { RunFacts } from "../../contract/run/run-facts.ts";
import { newId } from "../../lib/new-id.ts";
import type { Log } from "../../log/log.ts";
import { appendUnowned } from "../vocabulary/append-unowned.ts";
import { cut } from "./detectors.ts";

export interface GuardianDecision {
  action: GuardianAction;
  coherence: number;
  findings: readonly GuardianFinding[];
}

/** How much the priority of a duplicate drops among the waiting runs. */
const PRIORITY_LESS = 10;
const PRIORITY_MIN = -100;

/**
 * Appends a decision together with its action: the station may die at any moment, and neither may exist without the
 * other, or twice. `expectedSeq` is the last event that the decision was based on. Returns false if the run has
 * continued since, or is in a state in which nothing can be done.
 */
export async function appendDecision(log: Log, run: string, decision: GuardianDecision & { expectedSeq: number }): Promise<boolean> {
  let isAppended = false;
  await appendUnowned(log, run, (facts, seq) => {
    isAppended = seq === decision.expectedSeq && isPossible(facts, decision.action);
    if (!isAppended) return null;
    const { action, coherence, findings } = decision;
    const text = cut(findings.map((each) => each.text).join("; "));
    const decided = { decision: newId("dec"), action, coherence, findings: [...findings], text };
    return [{ type: "guardian.decided", data: decided }, ...effectsOf(action, { text, facts })];
  });
  return isAppended;
}

function isPossible({ status, stopRequested, asked: questions, queued }: RunFacts, action: GuardianAction): boolean {
  if (stopRequested !== null || questions.length > 0) return false;
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
      const prompt = `The guardian sees: ${text}. Continue the run?`;
      return [
        { type: "permission.asked", data: { question: newId("ask"), call: null, kind: "stuck", text: prompt, pattern: null } },
        { type: "run.paused", data: { why: "stuck", text: prompt } },
      ];
    }
    case "stop":
      return [{ type: "run.stop_requested", data: { by: `guardian: ${text}` } }];
  }
}
