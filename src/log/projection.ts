import type { z } from "zod";
import type { AnyEventDefinition } from "../contract/define-event.ts";
import { applyToDrivenFacts, DRIVEN_FACTS_VERSION, type DrivenFacts, emptyDrivenFacts } from "../contract/driven.ts";
import { type EventFamily, readEvent, type StoredForm } from "../contract/event-family.ts";
import { mergeEvents } from "../contract/merge-event.ts";
import { runEvents } from "../contract/run-event.ts";
import { applyToFacts, emptyRunFacts, RUN_FACTS_VERSION, type RunFacts } from "../contract/run-facts.ts";
import {
  applyToSandboxFacts,
  emptySandboxFacts,
  SANDBOX_FACTS_VERSION,
  type SandboxFacts,
  sandboxLogEvents,
} from "../contract/sandbox-log-event.ts";
import { shipEvents } from "../contract/ship-event.ts";
import { applyToShipFacts, emptyShipFacts, SHIP_FACTS_VERSION, type ShipFacts } from "../contract/ship-facts.ts";
import { type SpecEvent, specEvents } from "../contract/spec-event.ts";
import { applyToSpecFacts, emptySpecFacts, SPEC_FACTS_VERSION, type SpecFacts } from "../contract/spec-facts.ts";
import { workflowEvents } from "../contract/workflow-event.ts";
import type { NewEvent } from "./log.ts";

type Json = z.core.util.JSONType;

/** What becomes of a stream's events, kept beside the stream and changed in the same transaction as the stream is. */
export interface Projection {
  /** Of the streams it is made for. */
  prefix: string;
  /** Heads of another version are folded anew. */
  version: number;
  /** Of a stream in which nothing happened yet. */
  empty(): Json;
  /** Throws for an event that it does not understand. */
  apply(head: Json, event: StoredForm): Json;
  /** Whether more is expected of the stream. */
  isOpen(head: Json): boolean;
  /** Fields, by their dotted paths, that closed streams are found by at once. Absent: all of them are looked at. */
  indexed?: readonly string[];
  /** What they are found by besides. */
  terms?(head: Json): readonly string[];
}

const runs: Projection = {
  prefix: "run/",
  version: RUN_FACTS_VERSION,
  empty: () => emptyRunFacts() as unknown as Json,
  apply(head, event) {
    applyToFacts(head as unknown as RunFacts, readEvent(runEvents, event));
    return head;
  },
  isOpen: (head) => (head as unknown as RunFacts).status !== "ended",
  indexed: ["owner", "name", "session", "parent.run", "agent", "model", "sandbox.runtime", "finish"],
  terms(head) {
    const { labels, guardian } = head as unknown as RunFacts;
    const ofLabels = Object.entries(labels).map(([key, value]) => labelTerm(`${key}=${value}`));
    return guardian.decisions.length === 0 ? ofLabels : [...ofLabels, GUARDED_TERM];
  },
};

/** Of a run that the guardian did something about. */
export const GUARDED_TERM = "guarded";

/** A label, as `KEY=VALUE`, among the terms of a run. */
export const labelTerm = (label: string): string => `label:${label}`;

const sandboxes: Projection = {
  prefix: "sandbox/",
  version: SANDBOX_FACTS_VERSION,
  empty: () => emptySandboxFacts() as unknown as Json,
  apply(head, event) {
    applyToSandboxFacts(head as unknown as SandboxFacts, readEvent(sandboxLogEvents, event));
    return head;
  },
  isOpen(head) {
    const { health, life } = head as unknown as SandboxFacts;
    return health.level !== "ok" || (life !== null && life.state !== "ended");
  },
};

/** A kind of driven things, as far as its heads go. */
interface DrivenKind {
  prefix: string;
  events: EventFamily<AnyEventDefinition>;
  /** What it adds to the facts that all kinds share. A new version folds its heads anew. */
  own?: { version: number; empty(): Json; apply(own: Json, event: { type: string; at: string; data: Json }): Json };
}

/** The heads of a kind of driven things. */
export function drivenProjection({ prefix, events, own }: DrivenKind): Projection {
  return {
    prefix,
    version: DRIVEN_FACTS_VERSION * 1000 + (own?.version ?? 0),
    empty: () => ({ ...emptyDrivenFacts(), own: own?.empty() ?? null }),
    apply(head, stored) {
      const facts = head as unknown as DrivenFacts;
      const event = readEvent(events, stored) as { type: string; at: string; data: Json };
      applyToDrivenFacts(facts, event);
      if (own !== undefined) facts.own = own.apply(facts.own, event);
      return head;
    },
    isOpen: (head) => (head as unknown as DrivenFacts).finish === null,
    indexed: ["owner", "status", "finish", "parent"],
  };
}

/** One line for each kind of driven things. */
const drivenKinds: readonly DrivenKind[] = [
  { prefix: "workflow/", events: workflowEvents },
  {
    prefix: "spec/",
    events: specEvents,
    own: {
      version: SPEC_FACTS_VERSION,
      empty: () => emptySpecFacts(),
      apply: (own, event) => applyToSpecFacts(own as unknown as SpecFacts, event as unknown as SpecEvent),
    },
  },
  {
    prefix: "ship/",
    events: shipEvents,
    own: {
      version: SHIP_FACTS_VERSION,
      empty: () => emptyShipFacts() as unknown as Json,
      apply(own, event) {
        applyToShipFacts(own as unknown as ShipFacts, event);
        return own;
      },
    },
  },
  { prefix: "merge/", events: mergeEvents },
];

const projections = [runs, sandboxes, ...drivenKinds.map(drivenProjection)];

/** Which projection a stream has, if any. */
export type FindProjection = (stream: string) => Projection | null;

export const projectionOf: FindProjection = (stream) => projections.find(({ prefix }) => stream.startsWith(prefix)) ?? null;

/** Adds events to a head. One that cannot be understood is left out, and said to be. */
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
