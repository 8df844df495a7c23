import type { z } from "zod";
import { bestEvents } from "../contract/best/best-event.ts";
import { applyToJobFacts, DRIVEN_FACTS_VERSION, emptyJobFacts, type JobFacts } from "../contract/durable/durable-job.ts";
import type { AnyEventDefinition } from "../contract/event/define-event.ts";
import { type EventFamily, readEvent, type StoredForm } from "../contract/event/event-family.ts";
import { mergeEvents } from "../contract/merge/merge-event.ts";
import { runEvents } from "../contract/run/run-event.ts";
import { applyToFacts, emptyRunFacts, RUN_FACTS_VERSION, type RunFacts } from "../contract/run/run-facts.ts";
import {
  applyToSandboxFacts,
  emptySandboxFacts,
  SANDBOX_FACTS_VERSION,
  type SandboxFacts,
  sandboxLogEvents,
} from "../contract/sandbox/sandbox-log-event.ts";
import { shipEvents } from "../contract/ship/ship-event.ts";
import { applyToShipFacts, emptyShipFacts, SHIP_FACTS_VERSION, type ShipFacts } from "../contract/ship/ship-facts.ts";
import { specEvents } from "../contract/spec/spec-event.ts";
import { applyToSpecFacts, emptySpecFacts, SPEC_FACTS_VERSION, type SpecFacts } from "../contract/spec/spec-facts.ts";
import { workflowEvents } from "../contract/workflow/workflow-event.ts";
import type { NewEvent } from "./log.ts";

type Json = z.core.util.JSONType;

/** A fold of a stream's events, stored next to the stream and updated in the same transaction. */
export interface Projection<Head = Json> {
  /** The prefix of the streams that it applies to. */
  prefix: string;
  /** Heads of another version are rebuilt. */
  version: number;
  /** Returns the head of a stream without events. */
  empty(): Head;
  /** Throws for an event that it does not know. */
  apply(head: Head, event: StoredForm): Head;
  /** Whether more events are expected in the stream. */
  isOpen(head: Head): boolean;
  /** Dotted paths of fields by which closed streams are indexed. Absent: every head is scanned. */
  indexed?: readonly string[];
  /** Further index terms. */
  terms?(head: Head): readonly string[];
}

/** Heads are stored as JSON; each projection knows its own type. */
const asStored = <Facts>(projection: Projection<Facts>): Projection => projection as unknown as Projection;

const runs: Projection<RunFacts> = {
  prefix: "run/",
  version: RUN_FACTS_VERSION,
  empty: emptyRunFacts,
  apply(head, event) {
    applyToFacts(head, readEvent(runEvents, event));
    return head;
  },
  isOpen: ({ status }) => status !== "ended",
  indexed: ["owner", "name", "session", "parent.run", "agent", "model", "sandbox.runtime", "finish"],
  terms({ labels, guardian }) {
    const ofLabels = Object.entries(labels).map(([key, value]) => labelTerm(`${key}=${value}`));
    return guardian.decisions.length === 0 ? ofLabels : [...ofLabels, GUARDED_TERM];
  },
};

/** The term of a run on which the guardian acted. */
export const GUARDED_TERM = "guarded";

/** Returns the term for a label, given as `KEY=VALUE`. */
export const labelTerm = (label: string): string => `label:${label}`;

const sandboxes: Projection<SandboxFacts> = {
  prefix: "sandbox/",
  version: SANDBOX_FACTS_VERSION,
  empty: emptySandboxFacts,
  apply(head, event) {
    applyToSandboxFacts(head, readEvent(sandboxLogEvents, event));
    return head;
  },
  isOpen: ({ health, life }) => health.level !== "ok" || (life !== null && life.state !== "ended"),
};

/** What the head projection needs to know about a kind of durable job. */
interface JobKind<Own> {
  prefix: string;
  events: EventFamily<AnyEventDefinition>;
  /** Facts beyond those that all kinds share. A new version rebuilds the heads. */
  own?: { version: number; empty(): Own; apply(own: Own, event: { type: string; at: string; data: unknown }): Own };
}

/** Returns the projection for a kind of durable job. */
export function jobProjection<Own = null>({ prefix, events, own }: JobKind<Own>): Projection {
  return asStored<Omit<JobFacts, "own"> & { own: Own | null }>({
    prefix,
    version: DRIVEN_FACTS_VERSION * 1000 + (own?.version ?? 0),
    empty: () => ({ ...emptyJobFacts(), own: own?.empty() ?? null }),
    apply(facts, stored) {
      const event = readEvent(events, stored);
      applyToJobFacts(facts as JobFacts, event);
      if (own !== undefined) facts.own = own.apply(facts.own as Own, event);
      return facts;
    },
    isOpen: ({ finish }) => finish === null,
    indexed: ["owner", "status", "finish", "parent"],
  });
}

const specs: JobKind<SpecFacts> = {
  prefix: "spec/",
  events: specEvents,
  own: { version: SPEC_FACTS_VERSION, empty: emptySpecFacts, apply: applyToSpecFacts },
};

const ships: JobKind<ShipFacts> = {
  prefix: "ship/",
  events: shipEvents,
  own: {
    version: SHIP_FACTS_VERSION,
    empty: emptyShipFacts,
    apply(own, event) {
      applyToShipFacts(own, event);
      return own;
    },
  },
};

const projections: readonly Projection[] = [
  asStored(runs),
  asStored(sandboxes),
  jobProjection({ prefix: "workflow/", events: workflowEvents }),
  jobProjection(specs),
  jobProjection(ships),
  jobProjection({ prefix: "merge/", events: mergeEvents }),
  jobProjection({ prefix: "best/", events: bestEvents }),
];

/** Returns a stream's projection, or null if it has none. */
export type FindProjection = (stream: string) => Projection | null;

export const projectionOf: FindProjection = (stream) => projections.find(({ prefix }) => stream.startsWith(prefix)) ?? null;

/** Folds events into a head. Skips an event that it cannot understand, and records it as damage. */
export function project(
  projection: Projection,
  from: { head: Json | null; damage: string | null },
  events: readonly (NewEvent & { at: string; seq: number; damage?: string })[],
): { head: Json; damage: string | null } {
  let { damage } = from;
  let head = from.head ?? projection.empty();
  for (const event of events) {
    try {
      head = projection.apply(head, event);
    } catch {
      damage ??= `event ${event.seq} (${event.type}) cannot be understood`;
    }
  }
  return { head, damage };
}
