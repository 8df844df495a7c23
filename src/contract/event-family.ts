import { z } from "zod";
import type { AnyEventDefinition } from "./define-event.ts";
import { CaissonError } from "./error.ts";

/** The events that one kind of log or stream holds: its schema, and what makes and reads them. */
export interface EventFamily<Definition extends AnyEventDefinition> {
  readonly definitions: readonly Definition[];
  readonly byType: ReadonlyMap<string, Definition>;
}

/** An event of a family as it is handed in: whoever takes it adds version and time. */
export type NewEventOf<Event> = Event extends { type: infer Type; data: infer Data } ? { type: Type; data: Data } : never;

export function eventFamily<const Definition extends AnyEventDefinition>(definitions: readonly Definition[]): EventFamily<Definition> {
  const byType = new Map(definitions.map((each) => [each.shape.type.value, each]));
  if (byType.size !== definitions.length) throw new Error("two events of one family have the same type");
  return { definitions, byType };
}

/** Gives an event its current version, and the time. */
export function makeEvent<Definition extends AnyEventDefinition>(
  family: EventFamily<Definition>,
  event: NewEventOf<z.infer<Definition>>,
  at: string = new Date().toISOString(),
): z.infer<Definition> {
  const { type, data } = event as { type: string; data: unknown };
  return { type, version: family.byType.get(type)?.shape.version.value, at, data } as z.infer<Definition>;
}

/** An event as a log gives it back; where it stood, and what is wrong with it, if the log knows. */
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
 * What was stored, as the current version of its event; every log is read through here. Throws `internal` for what this
 * Caisson does not understand: a type or a version that only a newer one knows, or data that does not fit. A fold must
 * not pass over such an event, since nobody can tell what it changes: the run stays as it is for a Caisson that knows
 * it. A history that people read (a session's, a network's) shows the rest; see `readableEvent`.
 */
export function readEvent<Definition extends AnyEventDefinition>(family: EventFamily<Definition>, stored: StoredForm): z.infer<Definition> {
  const { type, version, damage } = stored;
  if (damage !== undefined) throw new CaissonError("internal", damage, { hint: damaged });
  const definition = family.byType.get(type);
  if (definition === undefined) throw notUnderstood(stored, { why: `this Caisson knows no event ${type}`, hint: newer });
  const current = definition.shape.version.value;
  if (version > current) {
    throw notUnderstood(stored, {
      why: `it is ${type} of version ${version}, and this Caisson knows versions up to ${current}`,
      hint: newer,
    });
  }
  return upcastFrom(definition, stored) as z.infer<Definition>;
}

/** The same for histories that people read: null for what is not understood. */
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
const newer = "It was written by a newer Caisson; use that one.";
const damaged = "It is damaged, or no Caisson wrote it; `caisson logs --check` tells more.";

/**
 * From the version that it was stored in, one version further at a time. Each step is checked: nothing half-converted
 * is folded.
 */
function upcastFrom(definition: AnyEventDefinition, stored: StoredForm): unknown {
  const { type, version } = stored;
  const current = definition.shape.version.value;
  if (version === current) return parsed(definition, stored);
  const { earlier } = definition;
  if (earlier === null) throw notUnderstood(stored, { why: `nothing is known of version ${version} of ${type}`, hint: damaged });
  const before = upcastFrom(earlier.definition, stored) as { data: never };
  return parsed(definition, { ...stored, version: current, data: earlier.convert(before.data) });
}

function parsed(definition: AnyEventDefinition, stored: StoredForm): unknown {
  const { type, version, at, data } = stored;
  const result = definition.safeParse({ type, version, at, data });
  if (result.success) return result.data;
  // Where it does not fit, never what is there: data may hold anything.
  const place = result.error.issues[0]?.path.join(".");
  throw notUnderstood(stored, { why: `${place} does not fit ${type} of version ${version}`, hint: damaged });
}

function notUnderstood({ stream, seq }: StoredForm, { why, hint }: { why: string; hint: string }): CaissonError {
  const which = stream === undefined || seq === undefined ? "the event" : `event ${seq} of ${stream}`;
  return new CaissonError("internal", `${which} cannot be understood: ${why}`, { hint });
}
