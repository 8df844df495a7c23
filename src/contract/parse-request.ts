import { z } from "zod";
import { CaissonError } from "./error.ts";

/** The argument of a verb, checked and complete. Throws `invalid` with what is wrong where. */
export function parseRequest<Schema extends z.ZodType>(schema: Schema, given: unknown, what: string): z.output<Schema> {
  const parsed = schema.safeParse(given);
  if (parsed.success) return parsed.data;
  throw new CaissonError("invalid", `${what} cannot be asked for like this: ${z.prettifyError(parsed.error).replaceAll(/\s*\n\s*/g, " ")}`);
}
