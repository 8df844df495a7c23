import { z } from "zod";
import { SandboxCreated, SandboxEnded, SandboxLabelled, SandboxPaused, SandboxResumed } from "./event.ts";
import { eventFamily, type NewEventOf } from "./event-family.ts";
import { emptyHealthFacts, foldHealth, HealthFacts } from "./health.ts";
import { HealthChanged, HealthEscalated, HealthRestartEnded, HealthRestartStarted } from "./health-event.ts";
import { ArtifactStored, SandboxReported } from "./inside-event.ts";

/**
 * The events of a sandbox, in the stream `sandbox/<id>`. Its beginning, its states and its end are put there by the
 * station, whoever caused them. Of a run's sandbox all else is in the run's log.
 */
const all = [
  SandboxCreated,
  SandboxPaused,
  SandboxResumed,
  SandboxLabelled,
  SandboxEnded,
  HealthChanged,
  HealthRestartStarted,
  HealthRestartEnded,
  HealthEscalated,
  SandboxReported,
  ArtifactStored,
] as const;
export const SandboxLogEvent = z.discriminatedUnion("type", all);
export type SandboxLogEvent = z.infer<typeof SandboxLogEvent>;
export type NewSandboxLogEvent = NewEventOf<SandboxLogEvent>;
export const sandboxLogEvents = eventFamily(all);

/** What a sandbox's log has come to. */
export const SandboxFacts = z.object({
  health: HealthFacts,
  /** Null before its beginning is in the log. */
  life: z.object({ state: z.enum(["running", "paused", "ended"]), owner: z.string().nullable() }).nullable(),
});
export type SandboxFacts = z.infer<typeof SandboxFacts>;
export const SANDBOX_FACTS_VERSION = 2;

export const emptySandboxFacts = (): SandboxFacts => ({ health: emptyHealthFacts(), life: null });

const stateAfter = { "sandbox.paused": "paused", "sandbox.resumed": "running", "sandbox.ended": "ended" } as const;

export function applyToSandboxFacts(facts: SandboxFacts, event: SandboxLogEvent): void {
  switch (event.type) {
    case "sandbox.created":
      facts.life = { state: "running", owner: event.data.owner ?? null };
      return;
    case "sandbox.paused":
    case "sandbox.resumed":
    case "sandbox.ended":
      if (facts.life !== null) facts.life.state = stateAfter[event.type];
      return;
    case "health.changed":
    case "health.restart_started":
    case "health.restart_ended":
    case "health.escalated":
      foldHealth(facts.health, event);
      return;
    case "sandbox.labelled":
    case "sandbox.reported":
    case "artifact.stored":
      return;
    default:
      event satisfies never;
  }
}
