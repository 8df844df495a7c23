import type { JobFacts } from "../../contract/durable/durable-job.ts";
import { JobKind } from "../../contract/durable/durable-kinds.ts";
import { readEvent } from "../../contract/event/event-family.ts";
import type { FedJobEvent } from "../../contract/feed/fed-event.ts";
import { type AnyJobEvent, jobFamilies } from "../../contract/feed/fed-event.ts";
import type { PlacedEvent } from "../../log/log.ts";

/** The stream prefixes of all kinds. */
export const jobPrefixes: readonly string[] = JobKind.options.map((kind) => `${kind}/`);

/**
 * Returns the form in which followers of all events receive an event of a durable job. An event that cannot be read has
 * a `damage` text instead.
 */
export function fedByJob(stored: PlacedEvent, owner: string | null): FedJobEvent {
  const { stream, seq, position, damage } = stored;
  const kind = JobKind.parse(stream.slice(0, stream.indexOf("/")));
  const place = { driven: { kind, id: stream.slice(kind.length + 1) }, owner, seq, position };
  try {
    if (damage !== undefined) return { ...place, event: null, damage };
    return { ...place, event: readEvent(jobFamilies[kind], stored) as AnyJobEvent, damage: null };
  } catch (error) {
    return { ...place, event: null, damage: (error as Error).message };
  }
}

/** Returns a job's owner, given its head. Null if the first event could not be read, so the owner is unknown. */
export function ownerOfJob(head: unknown): string | null {
  const facts = head as JobFacts | undefined;
  return facts === undefined || facts.id === "" ? null : facts.owner;
}
