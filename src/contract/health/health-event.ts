import { z } from "zod";
import { concerns, defineEvent } from "../event/define-event.ts";
import { eventFamily, type NewEventOf } from "../event/event-family.ts";
import { HealthLevel } from "./health-level.ts";

/** What a station monitors: a sandbox, or the driver of a run. */
export const HealthSubject = z.object({ kind: z.enum(["sandbox", "driver"]), id: z.string().max(64) });
export type HealthSubject = z.infer<typeof HealthSubject>;

/** What the host observes of an unresponsive subject from outside. */
export const HealthCondition = z.enum(["running", "frozen", "stopped", "dead", "unknown"]);
export type HealthCondition = z.infer<typeof HealthCondition>;

export const IncidentId = z.string().regex(/^inc_[a-z2-7]{12}$/, "an incident id looks like inc_k3v7q2m5x4ab");
export type IncidentId = z.infer<typeof IncidentId>;

const text = z.string().max(2000);

export const HealthChanged = defineEvent("health.changed", 1, concerns("facts", "terminal", "console"), {
  subject: HealthSubject,
  level: HealthLevel,
  misses: z.int().nonnegative(),
  condition: HealthCondition,
});
/** The subject is about to be restarted; its state is stored as the incident. Counts as a restart from here on. */
export const HealthRestartStarted = defineEvent("health.restart_started", 1, concerns("facts", "terminal", "console"), {
  subject: HealthSubject,
  incident: IncidentId,
  why: text,
});
/**
 * `recovered`: it responded to the check. `restarted`: it works again. `handed_over`: it was ended, and the run's
 * driver continues with another. `impossible`: nothing here can start it again.
 */
export const HealthRestartEnded = defineEvent("health.restart_ended", 1, concerns("facts", "terminal", "console"), {
  subject: HealthSubject,
  incident: IncidentId,
  outcome: z.enum(["recovered", "restarted", "handed_over", "impossible", "failed"]),
  text,
  durationMs: z.number().nonnegative(),
});
/** It was restarted too often or cannot be restarted, and now needs a person. */
export const HealthEscalated = defineEvent("health.escalated", 1, concerns("facts", "terminal", "console"), {
  subject: HealthSubject,
  incident: IncidentId.nullable(),
  text,
});

const all = [HealthChanged, HealthRestartStarted, HealthRestartEnded, HealthEscalated] as const;
export const HealthEvent = z.discriminatedUnion("type", all);
export const healthEvents = eventFamily(all);
export type HealthEvent = z.infer<typeof HealthEvent>;
export type NewHealthEvent = NewEventOf<HealthEvent>;
