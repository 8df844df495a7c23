import type { z } from "zod";
import type { RunEvent } from "../contract/run-event.ts";
import { applyToFacts, emptyRunFacts, RUN_FACTS_VERSION, type RunFacts } from "../contract/run-facts.ts";
import type { NewEvent } from "./log.ts";

type Json = z.core.util.JSONType;

/** What becomes of a stream's events, kept beside the stream and changed in the same transaction as the stream is. */
interface Projection {
  /** Of the streams it is made for. */
  prefix: string;
  /** Heads of another version are folded anew. */
  version: number;
  apply(head: Json | null, event: NewEvent & { at: string }): Json;
  /** Whether more is expected of the stream. */
  isOpen(head: Json): boolean;
}

const runs: Projection = {
  prefix: "run/",
  version: RUN_FACTS_VERSION,
  apply(head, event) {
    const facts = head === null ? emptyRunFacts() : (head as unknown as RunFacts);
    applyToFacts(facts, event as unknown as RunEvent);
    return facts as unknown as Json;
  },
  isOpen: (head) => (head as unknown as RunFacts).status !== "ended",
};

export function projectionOf(stream: string): Projection | null {
  return stream.startsWith(runs.prefix) ? runs : null;
}

/** Adds events to a head. One that cannot be understood is left out, and said to be. */
export function project(
  projection: Projection,
  from: { head: Json | null; damage: string | null },
  events: readonly (NewEvent & { at: string; seq: number; damage?: string })[],
): { head: Json; damage: string | null } {
  let { head, damage } = from;
  for (const event of events) {
    try {
      if (event.damage !== undefined) throw new Error(event.damage);
      head = projection.apply(head, event);
    } catch {
      damage ??= `event ${event.seq} (${event.type}) cannot be understood`;
    }
  }
  return { head: head ?? projection.apply(null, { type: "nothing", version: 1, data: {}, at: new Date(0).toISOString() }), damage };
}
