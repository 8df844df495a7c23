import type { Incident } from "../../contract/health/health.ts";
import type { HealthCondition, IncidentId } from "../../contract/health/health-event.ts";
import type { Log, StoredEvent } from "../../log/log.ts";
import { readPages } from "../../log/read-pages.ts";
import type { HostView } from "../../sandbox/runtime.ts";
import { runStream, sandboxStream } from "../vocabulary/station-names.ts";
import { INCIDENT_BYTES_MAX } from "./incident-store.ts";
import type { Watched } from "./watched-subject.ts";

const EVENTS_MAX = 50;
const EVENT_CHARACTERS_MAX = 4_000;
const STREAMED_EVENTS_MAX = 500;
const CALLS_MAX = 10;
const OUTPUT_CHARACTERS_MAX = 8_000;

/**
 * Collects everything visible about an unresponsive subject before we act on it, without asking the subject. Lists
 * unreadable parts as missing, which does not delay the restart. Contains no secret values: sandboxes have none, and
 * the log is redacted.
 */
export async function collectIncident(
  watched: Watched,
  about: { id: IncidentId; condition: HealthCondition; why: string; log: Log },
): Promise<Incident> {
  const { id, condition, why, log } = about;
  const { subject, run, owner } = watched;
  const missing: string[] = [];
  const or = async <Value>(what: string, getting: Promise<Value>, otherwise: Value): Promise<Value> => {
    try {
      return await getting;
    } catch (error) {
      missing.push(`${what}: ${error instanceof Error ? error.message : String(error)}`.slice(0, 500));
      return otherwise;
    }
  };
  const seen = await or<HostView>("the host's view", watched.look(), { condition, stats: null, processes: [] });
  const last = await or("its events", lastEvents(log, run === null ? sandboxStream(subject.id) : runStream(run)), {
    events: [],
    output: [],
  });
  if (run === null && subject.kind === "sandbox") missing.push("the output of its commands: the guest has it, and does not respond");
  return trimIncident({
    id,
    at: new Date().toISOString(),
    subject,
    run,
    owner,
    condition,
    why,
    outcome: null,
    stats: seen.stats,
    processes: seen.processes,
    ...last,
    missing,
  });
}

/** Returns the last events and outputs in short form, because events may be large. */
async function lastEvents(log: Log, stream: string): Promise<Pick<Incident, "events" | "output">> {
  const last = await log.lastSeq(stream);
  const events: Incident["events"] = [];
  const byCall = new Map<string, string>();
  for await (const page of readPages(log, stream, { fromSeq: Math.max(1, last - STREAMED_EVENTS_MAX + 1) })) {
    for (const stored of page) {
      if (stored.seq > last - EVENTS_MAX) events.push(eventOf(stored));
      if (stored.type === "tool.streamed") addOutput(byCall, stored.data as { call: string; text: string });
    }
  }
  return { events: events.slice(-EVENTS_MAX), output: [...byCall].slice(-CALLS_MAX).map(([call, text]) => ({ call, text })) };
}

/** Cuts a long event to the beginning of its text. */
function eventOf({ seq, at, type, data }: StoredEvent): Incident["events"][number] {
  const text = JSON.stringify(data);
  if (text.length > EVENT_CHARACTERS_MAX) return { seq, at, type, data: `${text.slice(0, EVENT_CHARACTERS_MAX)}…` };
  return { seq, at, type, data };
}

function addOutput(byCall: Map<string, string>, { call, text }: { call: string; text: string }): void {
  byCall.set(call, `${byCall.get(call) ?? ""}${text}`.slice(-OUTPUT_CHARACTERS_MAX));
}

/** Drops the oldest events first to respect the size limit. */
function trimIncident(incident: Incident): Incident {
  let trimmedIncident = incident;
  while (
    Buffer.byteLength(JSON.stringify(trimmedIncident)) > INCIDENT_BYTES_MAX &&
    trimmedIncident.events.length + trimmedIncident.output.length > 0
  ) {
    trimmedIncident =
      trimmedIncident.events.length > 0
        ? { ...trimmedIncident, events: trimmedIncident.events.slice(1) }
        : { ...trimmedIncident, output: trimmedIncident.output.slice(1) };
  }
  return trimmedIncident;
}
