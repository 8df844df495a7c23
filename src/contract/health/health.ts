import { z } from "zod";
import { JsonValue } from "../json-value.ts";
import { HealthCondition, type HealthEvent, HealthSubject, IncidentId } from "./health-event.ts";
import { HealthLevel } from "./health-level.ts";

/** Enough for the longest period over which restarts are counted. */
const RESTARTS_REMEMBERED = 20;

/** The health of a subject, folded from its events. */
export const HealthFacts = z.object({
  level: HealthLevel,
  condition: HealthCondition,
  /** When it entered this level. */
  since: z.string().nullable(),
  /** The times of the latest restarts, whatever their outcome. */
  restarts: z.array(z.string()),
  /** A restart that began but has not ended: its station may have died. */
  restarting: IncidentId.nullable(),
  /** Left to a person until it is healthy again. */
  escalated: z.boolean(),
});
export type HealthFacts = z.infer<typeof HealthFacts>;

export function emptyHealthFacts(): HealthFacts {
  return { level: "ok", condition: "running", since: null, restarts: [], restarting: null, escalated: false };
}

/** Resets the health when the subject is replaced or no longer needed; earlier restarts still count. */
export function resetHealth(facts: HealthFacts): void {
  Object.assign(facts, {
    level: "ok",
    condition: "running",
    since: null,
    restarting: null,
    escalated: false,
  } satisfies Partial<HealthFacts>);
}

/** Applies one event to the facts, in place. */
export function foldHealth(facts: HealthFacts, event: HealthEvent): void {
  switch (event.type) {
    case "health.changed":
      facts.level = event.data.level;
      facts.condition = event.data.condition;
      facts.since = event.at;
      if (event.data.level === "ok") facts.escalated = false;
      return;
    case "health.restart_started":
      facts.restarts = [...facts.restarts, event.at].slice(-RESTARTS_REMEMBERED);
      facts.restarting = event.data.incident;
      return;
    case "health.restart_ended":
      facts.restarting = null;
      return;
    case "health.escalated":
      facts.escalated = true;
      return;
    default:
      event satisfies never;
  }
}

/** A monitored subject. */
export const HealthView = z.object({
  subject: HealthSubject.extend({ kind: z.enum(["sandbox", "driver", "station"]) }),
  /** The run that it belongs to. */
  run: z.string().nullable(),
  level: HealthLevel,
  condition: HealthCondition,
  since: z.string().nullable(),
  /** Restarts within the last hour. */
  restarts: z.int().nonnegative(),
  /** Whether it is left to a person. */
  escalated: z.boolean(),
});
export type HealthView = z.infer<typeof HealthView>;

/** `watched`: whether a station is monitoring the subjects; otherwise this is the last known state. */
export const HealthReport = z.object({ watched: z.boolean(), subjects: z.array(HealthView) });
export type HealthReport = z.infer<typeof HealthReport>;

/** A restart, and the state before it. */
export const IncidentView = z.object({
  id: IncidentId,
  at: z.iso.datetime(),
  subject: HealthSubject,
  run: z.string().nullable(),
  /** The subject's owner; null if it was not recorded, so that only callers who see everything see the incident. */
  owner: z.string().nullable().default(null),
  condition: HealthCondition,
  why: z.string(),
  /** Null while it is in progress, or if the restarting station died. */
  outcome: z.string().nullable(),
});
export type IncidentView = z.infer<typeof IncidentView>;

const SeenProcess = z.object({ pid: z.int(), state: z.string(), command: z.string(), cpuMs: z.number(), memoryBytes: z.number() });
export type SeenProcess = z.infer<typeof SeenProcess>;

/**
 * Everything recorded about an incident. Commands, output and events from inside are untrusted data. Sizes are bounded,
 * and secret values are redacted.
 */
export const Incident = IncidentView.extend({
  /** The host's resource accounting; null if it has none. */
  stats: JsonValue,
  /** As the host sees them, at most a few hundred. */
  processes: z.array(SeenProcess),
  /** The last events of its log. */
  events: z.array(z.object({ seq: z.int(), at: z.string(), type: z.string(), data: JsonValue })),
  /** The end of the output of each of the run's tool calls, as far as it was available. */
  output: z.array(z.object({ call: z.string(), text: z.string() })),
  /** What could not be collected, each as a sentence. */
  missing: z.array(z.string()),
});
export type Incident = z.infer<typeof Incident>;

const levels = HealthLevel.options;
export const worseLevel = (one: HealthLevel, other: HealthLevel): HealthLevel =>
  levels.indexOf(one) >= levels.indexOf(other) ? one : other;
