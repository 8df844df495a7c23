import { z } from "zod";

type EventSchema<Type extends string, Version extends number, Shape extends z.core.$ZodLooseShape> = z.ZodObject<{
  type: z.ZodLiteral<Type>;
  version: z.ZodLiteral<Version>;
  at: z.ZodISODateTime;
  data: z.ZodObject<Shape>;
}>;

/**
 * An event as it is declared: the schema of its current version, and how events of its earlier versions become such.
 */
export type EventDefinition<
  Type extends string = string,
  Version extends number = number,
  Shape extends z.core.$ZodLooseShape = z.core.$ZodLooseShape,
> = EventSchema<Type, Version, Shape> & {
  /** Null for an event that never had another shape. */
  readonly earlier: EarlierVersion | null;
  /** A new event of the current version; it happened now, unless said otherwise. */
  make(data: z.infer<z.ZodObject<Shape>>, at?: string): z.infer<EventSchema<Type, Version, Shape>>;
  /**
   * The same event, which is also read where it was stored in the version before: `convert` makes today's data of the
   * old. What `old` reads itself, versions before it included, is read, too. The old definition stays in the sources
   * for ever, and so does its golden file.
   */
  upcast<OldVersion extends number, OldShape extends z.core.$ZodLooseShape>(
    old: EventDefinition<Type, OldVersion, OldShape>,
    convert: (data: z.infer<z.ZodObject<OldShape>>) => z.infer<z.ZodObject<Shape>>,
  ): EventDefinition<Type, Version, Shape>;
};

export interface EarlierVersion {
  definition: AnyEventDefinition;
  convert(data: never): unknown;
}

/** What all definitions have in common, whatever their data. */
export type AnyEventDefinition = z.ZodObject<{
  type: z.ZodLiteral<string>;
  version: z.ZodLiteral<number>;
  at: z.ZodISODateTime;
  data: z.ZodObject;
}> & { readonly earlier: EarlierVersion | null };

/**
 * Declares an event once: its type, version and data. The schema, the TypeScript type, the stored form and `make`
 * derive from it. A stored event is never changed; a new shape is a new version:
 *
 *     const ToolEnded1 = defineEvent("tool.ended", 1, { call: CallId, text: z.string() });
 *     export const ToolEnded = defineEvent("tool.ended", 2, { call: CallId, parts: z.array(Part) }).upcast(ToolEnded1,
 *     ({ call, text }) => ({ call, parts: [{ text }] }));
 */
export function defineEvent<const Type extends string, const Version extends number, Shape extends z.core.$ZodLooseShape>(
  type: Type,
  version: Version,
  shape: Shape,
): EventDefinition<Type, Version, Shape> {
  return definition({ type, version, shape, earlier: null });
}

/** One for all: it is the most costly part of a definition. */
const at = z.iso.datetime();

function definition<const Type extends string, const Version extends number, Shape extends z.core.$ZodLooseShape>(options: {
  type: Type;
  version: Version;
  shape: Shape;
  earlier: EarlierVersion | null;
}): EventDefinition<Type, Version, Shape> {
  const { type, version, shape, earlier } = options;
  const schema = z.object({ type: z.literal(type), version: z.literal(version), at, data: z.object(shape) });
  const methods: Pick<EventDefinition<Type, Version, Shape>, "earlier" | "make" | "upcast"> = {
    earlier,
    make: (data, when = new Date().toISOString()) => ({ type, version, at: when, data }) as z.infer<EventSchema<Type, Version, Shape>>,
    upcast(old, convert) {
      const before = old as unknown as AnyEventDefinition;
      if (before.shape.type.value !== type || before.shape.version.value !== version - 1) {
        throw new Error(
          `${type} ${version} is made of version ${version - 1}, not of ${before.shape.type.value} ${before.shape.version.value}`,
        );
      }
      return definition({ ...options, earlier: { definition: before, convert: convert as EarlierVersion["convert"] } });
    },
  };
  return Object.assign(schema, methods);
}
