import { z } from "zod";

type EventSchema<Type extends string, Version extends number, Shape extends z.core.$ZodLooseShape> = z.ZodObject<{
  type: z.ZodLiteral<Type>;
  version: z.ZodLiteral<Version>;
  at: z.ZodISODateTime;
  data: z.ZodObject<Shape>;
}>;

/**
 * The readers of an event. Each has one table of handlers per event family (`Handlers`), which does not compile unless
 * it handles exactly the events that concern it.
 */
export type Concern =
  /** The state that decides what a run, spec, merge or workflow does next. */
  | "state"
  /** The heads of streams, for lists. */
  | "facts"
  /** Lines in a terminal: `logs`, `attach` and the commands that follow a job. */
  | "terminal"
  /** The console's timeline and histories. */
  | "console"
  /** What an agent finds with the `recall` tool. */
  | "recall"
  /** The trajectory that the guardian judges. */
  | "guardian"
  /** Trace spans. */
  | "spans"
  /** The counters of `/metrics`. */
  | "metrics";

/** The declaration of an event: the schema of its current version, and how to convert earlier versions to it. */
export type EventDefinition<
  Type extends string = string,
  Version extends number = number,
  Shape extends z.core.$ZodLooseShape = z.core.$ZodLooseShape,
  Concerns extends readonly Concern[] = readonly Concern[],
> = EventSchema<Type, Version, Shape> & {
  readonly concerns: Concerns;
  /** Null if there is no earlier version. */
  readonly earlier: EarlierVersion | null;
  /** Creates an event of the current version; the time defaults to now. */
  make(data: z.infer<z.ZodObject<Shape>>, at?: string): z.infer<EventSchema<Type, Version, Shape>>;
  /**
   * Also accepts stored events of the previous version: `convert` converts its data to the current form. Versions that
   * `old` accepts, including earlier ones, are accepted as well. The old definition and its golden file stay in the
   * source permanently.
   */
  upcast<OldVersion extends number, OldShape extends z.core.$ZodLooseShape>(
    old: EventDefinition<Type, OldVersion, OldShape>,
    convert: (data: z.infer<z.ZodObject<OldShape>>) => z.infer<z.ZodObject<Shape>>,
  ): EventDefinition<Type, Version, Shape, Concerns>;
};

export interface EarlierVersion {
  definition: AnyEventDefinition;
  convert(data: never): unknown;
}

/** The parts that all definitions share, for any kind of data. */
export type AnyEventDefinition = z.ZodObject<{
  type: z.ZodLiteral<string>;
  version: z.ZodLiteral<number>;
  at: z.ZodISODateTime;
  data: z.ZodObject;
}> & { readonly earlier: EarlierVersion | null; readonly concerns: readonly Concern[] };

/**
 * Declares an event once: its type, version, readers and data. The schema, the TypeScript type, the stored form and
 * `make` derive from it. A stored event is never changed; a new shape is a new version:
 *
 *     const ToolEnded1 = defineEvent("tool.ended", 1, concerns(), { call: CallId, text: z.string() });
 *     export const ToolEnded = defineEvent("tool.ended", 2, concerns("state"), { call: CallId, parts: z.array(Part) })
 *       .upcast(ToolEnded1, ({ call, text }) => ({ call, parts: [{ text }] }));
 */
export function defineEvent<
  const Type extends string,
  const Version extends number,
  const Concerns extends readonly Concern[],
  Shape extends z.core.$ZodLooseShape,
>(type: Type, version: Version, readers: Concerns, shape: Shape): EventDefinition<Type, Version, Shape, Concerns> {
  return definition({ type, version, concerns: readers, shape, earlier: null });
}

/** Returns the readers of an event; if empty, only readers of the raw log see it. */
export const concerns = <const Concerns extends readonly Concern[]>(...readers: Concerns): Concerns => readers;

/** Shared by all events: it is the most expensive part of a definition. */
const at = z.iso.datetime();

function definition<Type extends string, Version extends number, Shape extends z.core.$ZodLooseShape, Concerns extends readonly Concern[]>(
  options: Pick<EventDefinition<Type, Version, Shape, Concerns>, "concerns" | "earlier"> & { type: Type; version: Version; shape: Shape },
): EventDefinition<Type, Version, Shape, Concerns> {
  const { type, version, shape, earlier } = options;
  const schema = z.object({ type: z.literal(type), version: z.literal(version), at, data: z.object(shape) });
  const methods: Pick<EventDefinition<Type, Version, Shape, Concerns>, "concerns" | "earlier" | "make" | "upcast"> = {
    concerns: options.concerns,
    earlier,
    make: (data, when = new Date().toISOString()) => ({ type, version, at: when, data }) as z.infer<EventSchema<Type, Version, Shape>>,
    upcast(old, convert) {
      const before = old as unknown as AnyEventDefinition;
      if (before.shape.type.value !== type || before.shape.version.value !== version - 1) {
        throw new Error(
          `${type} ${version} must be made of version ${version - 1}, not of ${before.shape.type.value} ${before.shape.version.value}`,
        );
      }
      return definition({ ...options, earlier: { definition: before, convert: convert as EarlierVersion["convert"] } });
    },
  };
  return Object.assign(schema, methods);
}
