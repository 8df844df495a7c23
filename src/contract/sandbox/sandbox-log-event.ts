import { z } from "zod";
import { type EventFor, eventFamily, type NewEventOf } from "../event/event-family.ts";
import { type Handlers, handle } from "../event/handlers.ts";
import { emptyHealthFacts, foldHealth, HealthFacts } from "../health/health.ts";
import { HealthChanged, HealthEscalated, type HealthEvent, HealthRestartEnded, HealthRestartStarted } from "../health/health-event.ts";
import { ArtifactStored, SandboxReported } from "../inside/inside-event.ts";
import { SandboxCreated, SandboxEnded, SandboxLabelled, SandboxPaused, SandboxResumed } from "./sandbox-event.ts";

/**
 * The events of a sandbox, in the stream `sandbox/<id>`. The station records the sandbox's creation, states and end
 * there, whichever process caused them. For a run's sandbox everything else is in the run log.
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

/** The head of a sandbox's log. */
export const SandboxFacts = z.object({
  health: HealthFacts,
  /** Null if its creation is not in the log. */
  life: z.object({ state: z.enum(["running", "paused", "ended"]), owner: z.string().nullable() }).nullable(),
});
export type SandboxFacts = z.infer<typeof SandboxFacts>;
export const SANDBOX_FACTS_VERSION = 2;

export const emptySandboxFacts = (): SandboxFacts => ({ health: emptyHealthFacts(), life: null });

export function applyToSandboxFacts(facts: SandboxFacts, event: SandboxLogEvent): void {
  handle(handlers, event, facts);
}

const handlers: Handlers<EventFor<typeof sandboxLogEvents, "facts">, SandboxFacts> = {
  "sandbox.created": ({ data }, facts) => {
    facts.life = { state: "running", owner: data.owner ?? null };
  },
  "sandbox.paused": enter("paused"),
  "sandbox.resumed": enter("running"),
  "sandbox.ended": enter("ended"),
  "health.changed": applyHealth,
  "health.restart_started": applyHealth,
  "health.restart_ended": applyHealth,
  "health.escalated": applyHealth,
};

function enter(state: NonNullable<SandboxFacts["life"]>["state"]): (_: unknown, facts: SandboxFacts) => void {
  return (_, { life }) => {
    if (life !== null) life.state = state;
  };
}

function applyHealth(event: HealthEvent, { health }: SandboxFacts): void {
  foldHealth(health, event);
}

export const NumberedSandboxEvent = SandboxLogEvent.and(z.object({ seq: z.int().positive() }));
export type NumberedSandboxEvent = z.infer<typeof NumberedSandboxEvent>;
