import { z } from "zod";
import { CaissonError } from "../error/error.ts";
import type { AnyEventDefinition, Concern } from "./define-event.ts";

/** The events of one kind of log or stream. */
export interface EventFamily<Definition extends AnyEventDefinition> {
  readonly definitions: readonly Definition[];
  readonly byType: ReadonlyMap<string, Definition>;
}

/** An event as its producer creates it; the receiver adds version and time. */
export type NewEventOf<Event> = Event extends { type: infer Type; data: infer Data } ? { type: Type; data: Data } : never;

/** The events of a family that concern one kind of reader. */
export type EventFor<Family extends EventFamily<AnyEventDefinition>, Group extends Concern> = EventConcerning<
  Family["definitions"][number],
  Group
>;
type EventConcerning<Definition, Group extends Concern> = Definition extends AnyEventDefinition
  ? Group extends Definition["concerns"][number]
    ? z.infer<Definition>
    : never
  : never;

/** Returns the types of these events, for filtering a log. */
export function typesFor(family: EventFamily<AnyEventDefinition>, group: Concern): readonly string[] {
  return family.definitions.filter(({ concerns }) => concerns.includes(group)).map(({ shape }) => shape.type.value);
}

export function eventFamily<const Definition extends AnyEventDefinition>(definitions: readonly Definition[]): EventFamily<Definition> {
  const byType = new Map(definitions.map((each) => [each.shape.type.value, each]));
  if (byType.size !== definitions.length) throw new Error("two events of one family have the same type");
  return { definitions, byType };
}

/** Adds the current version and the time to an event. */
export function makeEvent<Definition extends AnyEventDefinition>(
  family: EventFamily<Definition>,
  event: NewEventOf<z.infer<Definition>>,
  at: string = new Date().toISOString(),
): z.infer<Definition> {
  const { type, data } = event as { type: string; data: unknown };
  return { type, version: family.byType.get(type)?.shape.version.value, at, data } as z.infer<Definition>;
}

/** An event from a log, with its place and damage if the log knows them. */
export interface StoredForm {
  type: string;
  version: number;
  at: string;
  data: unknown;
  stream?: string;
  seq?: number;
  damage?: string;
}

/**
 * Converts a stored event to its current version. Every log is read through this function. Throws `internal` for an
 * event that this Caisson does not understand: a newer type or version, or data that does not match. A fold must not
 * skip the event, because its effect is unknown. The run stays unchanged until a Caisson that understands the event
 * continues it. A history for people (of a session or network) shows the remaining events; see `readableEvent`.
 */
export function readEvent<Definition extends AnyEventDefinition>(family: EventFamily<Definition>, stored: StoredForm): z.infer<Definition> {
  const { type, version, damage } = stored;
  if (damage !== undefined) throw new CaissonError("internal", damage, { hint: damaged });
  const definition = family.byType.get(type);
  if (definition === undefined) throw notUnderstood(stored, { why: `this Caisson does not know the event type ${type}`, hint: newer });
  const current = definition.shape.version.value;
  if (version > current) {
    throw notUnderstood(stored, {
      why: `it has version ${version} of ${type}, but this Caisson only knows versions up to ${current}`,
      hint: newer,
    });
  }
  return upcastFrom(definition, stored) as z.infer<Definition>;
}

/** Like `readEvent`, for histories for people: returns null for an event it cannot read. */
export function readableEvent<Definition extends AnyEventDefinition>(
  family: EventFamily<Definition>,
  stored: unknown,
): z.infer<Definition> | null {
  const envelope = Envelope.safeParse(stored);
  if (!envelope.success) return null;
  try {
    return readEvent(family, envelope.data);
  } catch (error) {
    if (error instanceof CaissonError) return null;
    throw error;
  }
}

const Envelope = z.object({ type: z.string(), version: z.number(), at: z.string(), data: z.unknown() });
const newer = "A newer Caisson wrote it; use that version.";
const damaged = "It is damaged, or was not written by Caisson; check with `caisson logs --check`.";

/**
 * Converts an event from its stored version, one version at a time. Validates each step, so that nothing half-converted
 * is folded.
 */
function upcastFrom(definition: AnyEventDefinition, stored: StoredForm): unknown {
  const { type, version } = stored;
  const current = definition.shape.version.value;
  if (version === current) return parseStored(definition, stored);
  const { earlier } = definition;
  if (earlier === null) throw notUnderstood(stored, { why: `${type} has no version ${version}`, hint: damaged });
  const before = upcastFrom(earlier.definition, stored) as { data: never };
  return parseStored(definition, { ...stored, version: current, data: earlier.convert(before.data) });
}

function parseStored(definition: AnyEventDefinition, stored: StoredForm): unknown {
  const { type, version, at, data } = stored;
  const result = definition.safeParse({ type, version, at, data });
  if (result.success) return result.data;
  // Reports only the place, never the value: the data may contain anything.
  const place = result.error.issues[0]?.path.join(".");
  throw notUnderstood(stored, { why: `${place} does not match version ${version} of ${type}`, hint: damaged });
}

function notUnderstood({ stream, seq }: StoredForm, { why, hint }: { why: string; hint: string }): CaissonError {
  const which = stream === undefined || seq === undefined ? "the event" : `event ${seq} of ${stream}`;
  return new CaissonError("internal", `${which} cannot be understood: ${why}`, { hint });
}
