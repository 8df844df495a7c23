import type { DrivenFacts } from "../../contract/driven.ts";
import { type AnyDrivenEvent, DrivenKind, drivenFamilies } from "../../contract/driven-kinds.ts";
import { readEvent } from "../../contract/event-family.ts";
import type { FedDrivenEvent } from "../../contract/run-verbs.ts";
import type { PlacedEvent } from "../../log/log.ts";

/** Of the streams of all kinds. */
export const drivenPrefixes: readonly string[] = DrivenKind.options.map((kind) => `${kind}/`);

/** An event of a driven thing for whoever follows those of everything. One that cannot be read says so. */
export function fedByDriven(stored: PlacedEvent, owner: string | null): FedDrivenEvent {
  const { stream, seq, position, damage } = stored;
  const kind = DrivenKind.parse(stream.slice(0, stream.indexOf("/")));
  const place = { driven: { kind, id: stream.slice(kind.length + 1) }, owner, seq, position };
  try {
    if (damage !== undefined) return { ...place, event: null, damage };
    return { ...place, event: readEvent(drivenFamilies[kind], stored) as AnyDrivenEvent, damage: null };
  } catch (error) {
    return { ...place, event: null, damage: (error as Error).message };
  }
}

/** Whose a thing is, by its head; null where its first event could not be read, and so nobody knows. */
export function ownerOfDriven(head: unknown): string | null {
  const facts = head as DrivenFacts | undefined;
  return facts === undefined || facts.id === "" ? null : facts.owner;
}
