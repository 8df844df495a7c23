import { z } from "zod";

/** Declares an event once: its type, version and data. The schema, the TypeScript type and the stored form derive from it. */
export function defineEvent<const Type extends string, const Version extends number, Shape extends z.ZodRawShape>(
  type: Type,
  version: Version,
  shape: Shape,
) {
  return z.object({ type: z.literal(type), version: z.literal(version), at: z.iso.datetime(), data: z.object(shape) });
}
