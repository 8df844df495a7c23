import { z } from "zod";
import { isDrivenEvent } from "./is-driven-event.ts";
import { SpecPhase } from "./spec.ts";
import type { SpecEvent } from "./spec-event.ts";

/** What the log keeps of a spec besides what it keeps of everything driven, so that lists fold nothing. */
export const SpecFacts = z.object({
  name: z.string().nullable(),
  /** Whether nobody has executed it yet. */
  isDraft: z.boolean(),
  outcome: z.enum(["done", "planned", "failed", "cancelled"]).nullable(),
  /** The phase that was worked on last. */
  phase: SpecPhase,
  version: z.int().nonnegative(),
});
export type SpecFacts = z.infer<typeof SpecFacts>;
export const SPEC_FACTS_VERSION = 1;

export const emptySpecFacts = (): SpecFacts => ({ name: null, isDraft: true, outcome: null, phase: "explore", version: 0 });

export function applyToSpecFacts(facts: SpecFacts, event: Pick<SpecEvent, "type" | "data">): SpecFacts {
  const given = event as SpecEvent;
  if (isDrivenEvent(given)) return facts;
  const { type, data } = given;
  switch (type) {
    case "spec.proposed":
      return { ...facts, name: data.name ?? null };
    case "spec.executed":
      return { ...facts, isDraft: false, outcome: null, phase: data.from ?? facts.phase };
    case "spec.phase_started":
      return { ...facts, phase: data.phase };
    case "spec.written":
      return { ...facts, phase: data.content.phase, version: data.version };
    case "spec.task_started":
      return { ...facts, phase: "complete" };
    case "spec.concluded":
      return { ...facts, outcome: data.outcome };
    case "spec.phase_running":
    case "spec.phase_judged":
    case "spec.approved":
    case "spec.rejected":
    case "spec.task_running":
    case "spec.task_ended":
    case "spec.merge_started":
    case "spec.merge_running":
    case "spec.merge_ended":
      return facts;
    default:
      // A new event does not compile until it is named above.
      void (type satisfies never);
      return facts;
  }
}
