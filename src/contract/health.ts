import { z } from "zod";
import { HealthCondition, type HealthEvent, HealthSubject, IncidentId } from "./health-event.ts";
import { HealthLevel } from "./health-level.ts";
import { JsonValue } from "./json-value.ts";

/** As many as the longest count looks back for. */
const RESTARTS_REMEMBERED = 20;

/** What is known of the health of one that is watched: a fold of its events. */
export const HealthFacts = z.object({
  level: HealthLevel,
  condition: HealthCondition,
  /** When it came to this level. */
  since: z.string().nullable(),
  /** When it was restarted, the last ones, whatever came of it. */
  restarts: z.array(z.string()),
  /** A restart that was begun and not ended: whoever began it may have died over it. */
  restarting: IncidentId.nullable(),
  /** Left to a person, until it is well again. */
  escalated: z.boolean(),
});
export type HealthFacts = z.infer<typeof HealthFacts>;

export function emptyHealthFacts(): HealthFacts {
  return { level: "ok", condition: "running", since: null, restarts: [], restarting: null, escalated: false };
}

/** Another one is there now, or none is needed any more; how often the ones before were restarted is not forgotten. */
export function isWell(facts: HealthFacts): void {
  Object.assign(facts, {
    level: "ok",
    condition: "running",
    since: null,
    restarting: null,
    escalated: false,
  } satisfies Partial<HealthFacts>);
}

/** Adds one event to the facts, in place. */
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

/** One that is watched. */
export const HealthView = z.object({
  subject: HealthSubject.extend({ kind: z.enum(["sandbox", "driver", "station"]) }),
  /** The run that it belongs to. */
  run: z.string().nullable(),
  level: HealthLevel,
  condition: HealthCondition,
  since: z.string().nullable(),
  /** Within the last hour. */
  restarts: z.int().nonnegative(),
  /** It is left to a person. */
  escalated: z.boolean(),
});
export type HealthView = z.infer<typeof HealthView>;

/** `watched`: whether a station looks after them; otherwise it is what one saw last. */
export const HealthReport = z.object({ watched: z.boolean(), subjects: z.array(HealthView) });
export type HealthReport = z.infer<typeof HealthReport>;

/** A restart, and what was seen before it. */
export const IncidentView = z.object({
  id: IncidentId,
  at: z.iso.datetime(),
  subject: HealthSubject,
  run: z.string().nullable(),
  /** Whose it was; null where that was not written down, which nobody sees but who sees everything. */
  owner: z.string().nullable().default(null),
  condition: HealthCondition,
  why: z.string(),
  /** Null while it is under way, or where whoever restarted it died over it. */
  outcome: z.string().nullable(),
});
export type IncidentView = z.infer<typeof IncidentView>;

const SeenProcess = z.object({ pid: z.int(), state: z.string(), command: z.string(), cpuMs: z.number(), memoryBytes: z.number() });
export type SeenProcess = z.infer<typeof SeenProcess>;

/**
 * Everything that was kept of one. What comes from inside (commands, output, events) is data that nobody vouches for;
 * it is cut to bounds, and values of secrets are redacted.
 */
export const Incident = IncidentView.extend({
  /** By the host's accounting; null where it does not say. */
  stats: JsonValue,
  /** As the host sees them, at most some hundred. */
  processes: z.array(SeenProcess),
  /** The last of its log. */
  events: z.array(z.object({ seq: z.int(), at: z.string(), type: z.string(), data: JsonValue })),
  /** The end of what each call of a run's tools wrote, as far as it came out. */
  output: z.array(z.object({ call: z.string(), text: z.string() })),
  /** What could not be had, each as a sentence. */
  missing: z.array(z.string()),
});
export type Incident = z.infer<typeof Incident>;

const levels = HealthLevel.options;
export const worseLevel = (one: HealthLevel, other: HealthLevel): HealthLevel =>
  levels.indexOf(one) >= levels.indexOf(other) ? one : other;
