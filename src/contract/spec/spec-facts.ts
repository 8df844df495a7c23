import { z } from "zod";
import type { EventFor } from "../event/event-family.ts";
import { type Handlers, handle } from "../event/handlers.ts";
import { SpecPhase } from "./spec.ts";
import type { specEvents } from "./spec-event.ts";

/** Facts of a spec in its head, in addition to those of all durable jobs, so that lists need not fold the stream. */
export const SpecFacts = z.object({
  name: z.string().nullable(),
  /** Whether the spec was never executed. */
  isDraft: z.boolean(),
  outcome: z.enum(["done", "planned", "failed", "cancelled"]).nullable(),
  /** The phase that was worked on last. */
  phase: SpecPhase,
  version: z.int().nonnegative(),
});
export type SpecFacts = z.infer<typeof SpecFacts>;
export const SPEC_FACTS_VERSION = 1;

export const emptySpecFacts = (): SpecFacts => ({ name: null, isDraft: true, outcome: null, phase: "explore", version: 0 });

/** Folds an event of a spec's stream. */
export function applyToSpecFacts(facts: SpecFacts, event: { type: string }): SpecFacts {
  return handle(handlers, event, facts) ?? facts;
}

const handlers: Handlers<EventFor<typeof specEvents, "facts">, SpecFacts, SpecFacts> = {
  "spec.proposed": ({ data }, facts) => ({ ...facts, name: data.name ?? null }),
  "spec.executed": ({ data }, facts) => ({ ...facts, isDraft: false, outcome: null, phase: data.from ?? facts.phase }),
  "spec.phase_started": ({ data }, facts) => ({ ...facts, phase: data.phase }),
  "spec.written": ({ data }, facts) => ({ ...facts, phase: data.content.phase, version: data.version }),
  "spec.task_started": (_, facts) => ({ ...facts, phase: "complete" }),
  "spec.concluded": ({ data }, facts) => ({ ...facts, outcome: data.outcome }),
};
