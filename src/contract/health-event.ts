import { z } from "zod";
import { defineEvent } from "./define-event.ts";
import { eventFamily, type NewEventOf } from "./event-family.ts";
import { HealthLevel } from "./health-level.ts";

/** What a station watches besides itself: a sandbox, or what drives a run. */
export const HealthSubject = z.object({ kind: z.enum(["sandbox", "driver"]), id: z.string().max(64) });
export type HealthSubject = z.infer<typeof HealthSubject>;

/** What the host sees of one that gives no sign of life, without asking it. */
export const HealthCondition = z.enum(["running", "frozen", "stopped", "dead", "unknown"]);
export type HealthCondition = z.infer<typeof HealthCondition>;

export const IncidentId = z.string().regex(/^inc_[a-z2-7]{12}$/, "an incident's id looks like inc_k3v7q2m5x4ab");
export type IncidentId = z.infer<typeof IncidentId>;

const text = z.string().max(2000);

export const HealthChanged = defineEvent("health.changed", 1, {
  subject: HealthSubject,
  level: HealthLevel,
  misses: z.int().nonnegative(),
  condition: HealthCondition,
});
/** It is about to be restarted; what was seen of it is kept as the incident. Counted from here on. */
export const HealthRestartStarted = defineEvent("health.restart_started", 1, { subject: HealthSubject, incident: IncidentId, why: text });
/**
 * `recovered`: it answered when it was asked. `restarted`: it works again. `handed_over`: it was ended, and whoever
 * drives the run goes on with another. `impossible`: nothing here can start it again.
 */
export const HealthRestartEnded = defineEvent("health.restart_ended", 1, {
  subject: HealthSubject,
  incident: IncidentId,
  outcome: z.enum(["recovered", "restarted", "handed_over", "impossible", "failed"]),
  text,
  durationMs: z.number().nonnegative(),
});
/** It was restarted too often, or cannot be: from here on it is a person's matter. */
export const HealthEscalated = defineEvent("health.escalated", 1, { subject: HealthSubject, incident: IncidentId.nullable(), text });

const all = [HealthChanged, HealthRestartStarted, HealthRestartEnded, HealthEscalated] as const;
export const HealthEvent = z.discriminatedUnion("type", all);
export const healthEvents = eventFamily(all);
export type HealthEvent = z.infer<typeof HealthEvent>;
export type NewHealthEvent = NewEventOf<HealthEvent>;
