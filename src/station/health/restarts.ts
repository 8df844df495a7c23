import { CaissonError } from "../../contract/error/error.ts";
import type { HealthFacts } from "../../contract/health/health.ts";
import type { HealthCondition, IncidentId } from "../../contract/health/health-event.ts";
import type { Crashpoint } from "../../lib/crashpoint.ts";
import { newId } from "../../lib/new-id.ts";
import type { Log } from "../../log/log.ts";
import { appendUnowned } from "../vocabulary/append-unowned.ts";
import { type HealthLog, rethrowUnlessEnded } from "./health-log.ts";
import { type HealthSettings, HOUR_MS } from "./health-settings.ts";
import type { IncidentStore } from "./incident-store.ts";
import type { Restarted, Watched } from "./watched-subject.ts";

export interface RestartsOptions {
  settings: HealthSettings;
  healthLog: HealthLog;
  log: Log;
  incidents: IncidentStore;
  /** Collects everything visible of the subject before it is touched. */
  collect: (watched: Watched, about: { id: IncidentId; condition: HealthCondition; why: string }) => Promise<void>;
  crashpoint: Crashpoint;
  now?: () => number;
}

/** How people read the condition of an unresponsive subject. */
export const conditionTexts: Readonly<Record<HealthCondition, string>> = {
  running: "it is running but does not respond",
  frozen: "it is frozen",
  stopped: "it was stopped (SIGSTOP)",
  dead: "it has died",
  unknown: "it does not respond",
};

/**
 * Restarts unresponsive subjects: one restart at a time each, with a cool-down in between, and a limited number per
 * hour; after that a person is asked. Each restart is recorded before it begins, so that a station that dies during it
 * does not start counting again.
 */
export function createRestarts(options: RestartsOptions) {
  const { settings, healthLog, incidents } = options;
  const now = options.now ?? Date.now;
  const escalate = async (watched: Watched, { text, incident }: { text: string; incident: IncidentId | null }): Promise<void> => {
    const { subject, run } = watched;
    await healthLog.append(watched, { type: "health.escalated", data: { subject, incident, text } });
    if (run !== null) await askPerson(options.log, run, text);
  };
  const restart = async (watched: Watched, about: { condition: HealthCondition; signal: AbortSignal }): Promise<void> => {
    const { subject } = watched;
    const { condition, signal } = about;
    const id = newId("inc");
    const why = `${subject.kind} ${subject.id} did not respond: ${conditionTexts[condition]}`;
    await options.collect(watched, { id, condition, why });
    await healthLog.append(watched, { type: "health.restart_started", data: { subject, incident: id, why } });
    options.crashpoint("health.restart");
    const startedMs = performance.now();
    const { outcome, text } = await attempt(watched, { condition, graceMs: settings.graceMs, signal });
    options.crashpoint("health.restarted");
    const durationMs = Math.round(performance.now() - startedMs);
    await healthLog.append(watched, { type: "health.restart_ended", data: { subject, incident: id, outcome, text, durationMs } });
    await incidents.finish(id, { outcome: `${outcome}: ${text}` });
    if (outcome === "impossible") await escalate(watched, { text: `${why}. ${text}`, incident: id });
  };
  return {
    /** See `HealthWatchOptions.restart`. */
    async restart(watched: Watched, about: { condition: HealthCondition; signal: AbortSignal }): Promise<boolean> {
      const facts = await healthLog.facts(watched);
      if (facts.restarting !== null) await finishForgotten(watched, { facts, ...options });
      if (facts.escalated) return false;
      const recent = recentRestarts(facts, now());
      if (recent.length >= settings.restartsPerHour) {
        const times = `${recent.length} ${recent.length === 1 ? "time" : "times"}`;
        const text = `${watched.subject.kind} ${watched.subject.id} was restarted ${times} within an hour, and is unresponsive again: ${conditionTexts[about.condition]}`;
        await escalate(watched, { text, incident: null });
        return false;
      }
      const last = recent.at(-1);
      if (last !== undefined && now() - last < settings.cooldownMs) return false;
      await restart(watched, about);
      return true;
    },
  };
}

/**
 * Returns the restarts of the last hour. Future ones do not count: the clock was set back since, and they would prevent
 * restarts until then.
 */
export function recentRestarts({ restarts }: Pick<HealthFacts, "restarts">, nowMs: number): number[] {
  return restarts.map((at) => Date.parse(at)).filter((atMs) => atMs <= nowMs && nowMs - atMs < HOUR_MS);
}

async function attempt(watched: Watched, about: { condition: HealthCondition; graceMs: number; signal: AbortSignal }): Promise<Restarted> {
  try {
    return (await watched.restart?.(about)) ?? { outcome: "impossible", text: "it cannot be restarted from here" };
  } catch (error) {
    if (!(error instanceof CaissonError)) throw error;
    return { outcome: error.code === "unsupported" ? "impossible" : "failed", text: error.sentences.slice(0, 1900) };
  }
}

/** Ends a restart whose station died. It has been counted, and the next check shows its result. */
async function finishForgotten(
  watched: Watched,
  { facts, healthLog, incidents }: { facts: HealthFacts } & Pick<RestartsOptions, "healthLog" | "incidents">,
): Promise<void> {
  const incident = facts.restarting;
  if (incident === null) return;
  const text = "the station stopped during the restart";
  const { subject } = watched;
  await healthLog.append(watched, {
    type: "health.restart_ended",
    data: { subject, incident, outcome: "failed", text, durationMs: 0 },
  });
  await incidents.finish(incident, { outcome: `failed: ${text}` });
}

/** Pauses the run until a person decides whether it continues. A run that already waits for a person is left alone. */
async function askPerson(log: Log, run: string, text: string): Promise<void> {
  await appendUnowned(log, run, (facts) => {
    if (facts.paused !== null || facts.asked.some(({ kind }) => kind === "stuck")) return null;
    const prompt = `${text}. Continue the run?`;
    return [
      { type: "permission.asked", data: { question: newId("ask"), call: null, kind: "stuck", text: prompt, pattern: null } },
      { type: "run.paused", data: { why: "stuck", text: prompt } },
    ];
  }).catch(rethrowUnlessEnded);
}
