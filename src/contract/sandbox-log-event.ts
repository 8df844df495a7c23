import { z } from "zod";
import { eventFamily, type NewEventOf } from "./event-family.ts";
import { emptyHealthFacts, foldHealth, HealthFacts } from "./health.ts";
import { HealthChanged, HealthEscalated, HealthRestartEnded, HealthRestartStarted } from "./health-event.ts";
import { ArtifactStored, SandboxReported } from "./inside-event.ts";

/**
 * The events of a sandbox that is not a run's, in the stream `sandbox/<id>`; those of a run's sandbox are in the run's.
 */
const all = [HealthChanged, HealthRestartStarted, HealthRestartEnded, HealthEscalated, SandboxReported, ArtifactStored] as const;
export const SandboxLogEvent = z.discriminatedUnion("type", all);
export type SandboxLogEvent = z.infer<typeof SandboxLogEvent>;
export type NewSandboxLogEvent = NewEventOf<SandboxLogEvent>;
export const sandboxLogEvents = eventFamily(all);

/** What a sandbox's log has come to. */
export const SandboxFacts = z.object({ health: HealthFacts });
export type SandboxFacts = z.infer<typeof SandboxFacts>;
export const SANDBOX_FACTS_VERSION = 1;

export const emptySandboxFacts = (): SandboxFacts => ({ health: emptyHealthFacts() });

export function applyToSandboxFacts(facts: SandboxFacts, event: SandboxLogEvent): void {
  switch (event.type) {
    case "health.changed":
    case "health.restart_started":
    case "health.restart_ended":
    case "health.escalated":
      foldHealth(facts.health, event);
      return;
    case "sandbox.reported":
    case "artifact.stored":
      return;
    default:
      event satisfies never;
  }
}
